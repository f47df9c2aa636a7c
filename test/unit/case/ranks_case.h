// test/unit/ranks_case.h -- a model that learns on one rank, and the same model on several.
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
  std::shared_ptr<const run::Feed> feed;  // made up
};

// The learning rate is 1e-3 with Adam and 0.1 else.
Learner learner(plan::Graph forward, train::Optimizer optimizer);
// Of a shipped model.
Learner learner(std::string_view model, std::vector<language::SizeOverride> sizes,
                train::Optimizer optimizer);
// Of the model that a text creates, which may use what is shipped.
Learner created_learner(std::string_view text, train::Optimizer optimizer);

// The learner's plan spread as the text says, parameters sharded however small; throws what is wrong.
distribute::DistributedPlan spread(const Learner& learner, std::string_view distribution);

run::LocalRanksOptions on(std::int32_t ranks, comm::TransportKind transport = comm::TransportKind::inproc);
run::Weights from_seed(std::uint64_t seed);
run::DistributedRun steps(std::int64_t count);

// All from one seed and on the same batches. They throw what is wrong.
run::DistributedOutcome train(const Learner& learner, const distribute::DistributedPlan& plan,
                              const run::LocalRanksOptions& options, std::int64_t count = 20);
run::DistributedOutcome train(const Learner& learner, std::string_view distribution,
                              const run::LocalRanksOptions& options, std::int64_t count = 20);

struct OneRank {
  run::TrainingOutcome training;
  run::Weights weights;
};
OneRank train_alone(const Learner& learner, std::int64_t count = 20);

// How far apart two sets of tensors are at most, and in which tensor.
struct Apart {
  double relative = 0;  // to the largest number of the tensor, or to `least` where that is larger
  double absolute = 0;
  std::string worst;  // by `relative`
};
// Infinitely far where they have not the same tensors or numbers that are not finite.
Apart apart(const run::Weights& a, const run::Weights& b, double least = 1e-3);

void expect_same_bits(const run::Weights& a, const run::Weights& b);

}  // namespace weft::session
