// bench/support/local_training.h -- a shipped model trained by several ranks of this machine.
//
//   LocalTraining training({.model = "char_gpt"}, {.ranks = 2});
//   double seconds = training.train(20);     // for 20 steps, after a short warm-up
//
// The batch is sliced, unless a distribution is given. Data are synthetic. Ranks are processes that
// live for one call, so that they use no processor while others are measured.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/language/bind.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/local_ranks_run.h"

namespace weft::bench {

struct TrainedModel {
  std::string model;
  std::vector<language::SizeOverride> sizes = {};
  std::string distribution = {};  // may have stages; empty: rank=N: slice b
};

class LocalTraining {
 public:
  // Throws std::runtime_error.
  LocalTraining(const TrainedModel& model, const run::LocalRanksOptions& options);

  double train(std::int64_t steps) const;

  // timelines[rank][step], after a short warm-up.
  using Timelines = std::vector<std::vector<program::Timeline>>;
  Timelines timelines(std::int64_t steps, bool overlap) const;

  const distribute::DistributedPlan& plan() const { return plan_; }
  std::int64_t parameter_elements() const;

 private:
  run::LocalRanksOptions options_;
  distribute::DistributedPlan plan_;
  std::unique_ptr<const run::Feed> feed_;
};

}  // namespace weft::bench
