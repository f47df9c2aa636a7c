// test/unit/case/ranks_case.h -- a model trained on one rank, and the same model on several.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/language/bind.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/runtime/run/local_ranks_run.h"

namespace weft::session {

struct Learner {
  plan::Graph graph;
  std::shared_ptr<const run::Feed> feed;  // synthetic
};

// The learning rate is 1e-3 with Adam and 0.1 else.
Learner learner(plan::Graph forward, train::Optimizer optimizer);
// For a shipped model.
Learner learner(std::string_view model, std::vector<language::SizeOverride> sizes,
                train::Optimizer optimizer);
// For the model that a text creates. The text may use what is shipped.
Learner created_learner(std::string_view text, train::Optimizer optimizer);

// Distributes the learner's plan as the text says, and shards parameters of any size. Throws on
// errors.
distribute::DistributedPlan spread(const Learner& learner, std::string_view distribution);

run::LocalRanksOptions on(std::int32_t ranks, comm::TransportKind transport = comm::TransportKind::inproc);
run::Weights from_seed(std::uint64_t seed);
run::DistributedRun steps(std::int64_t count);

// All use the same seed and the same batches. They throw on errors.
run::DistributedOutcome train(const Learner& learner, const distribute::DistributedPlan& plan,
                              const run::LocalRanksOptions& options, std::int64_t count = 20);
run::DistributedOutcome train(const Learner& learner, std::string_view distribution,
                              const run::LocalRanksOptions& options, std::int64_t count = 20);

struct OneRank {
  run::TrainingOutcome training;
  run::Weights weights;
};
OneRank train_alone(const Learner& learner, std::int64_t count = 20);

// The largest difference between two sets of tensors, and the tensor that has it.
struct Apart {
  double relative = 0;  // relative to the tensor's largest element, at least `least`
  double absolute = 0;
  std::string worst;  // the tensor with the largest `relative`
};
// Infinite if the tensors differ in name or shape, or are not finite.
Apart apart(const run::Weights& a, const run::Weights& b, double least = 1e-3);

void expect_same_bits(const run::Weights& a, const run::Weights& b);

}  // namespace weft::session
