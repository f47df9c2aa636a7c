// Programs of ranks as compiled for a GPU, with merged updates and in-place state: they compile on
// any machine.
#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ranks_case.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/runtime/run/fit_program.h"

namespace weft::session {
namespace {

void expect_programs(const Learner& learner, std::string_view distribution) {
  distribute::DistributeOptions options;
  options.smallest_share = 1;  // these tests have no large tensors
  const auto read = distribute::read_distribution(distribution);
  ASSERT_TRUE(read.ok()) << distribution;
  const auto spread = pipeline::distribute_pipelined(learner.graph, *read, options);
  ASSERT_TRUE(spread.ok()) << distribution << ": " << spread.error().message;
  const distribute::DistributedPlan& plan = *spread;
  for (std::int32_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
    const auto fitted = run::fit_for_rank(plan, rank, run::rank_compiling(1, true), 0);
    ASSERT_TRUE(fitted.ok()) << distribution << ", rank " << rank << ": " << fitted.error().message;
  }
}

TEST(DevicePrograms, CompileForEveryRankAndOptimizer) {
  for (const train::Optimizer optimizer :
       {train::Optimizer::sgd, train::Optimizer::momentum, train::Optimizer::adam}) {
    const Learner gpt =
        learner("char_gpt",
                {{"b", 4, {}}, {"s", 6, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", 2, {}}, {"v", 12, {}}},
                optimizer);
    for (const std::string_view distribution :
         {"rank=2: slice b", "rank=2: slice h, f", "rank=3: slice v", "rank=2: slice b, shard optimizer",
          "rank=2: slice b, shard parameters", "data=2: slice b, shard parameters; tensor=2: slice h, f"})
      expect_programs(gpt, distribution);
  }
}

TEST(DevicePrograms, CompileForStagesExpertsAndSlicedSequences) {
  const Learner gpt = learner(
      "char_gpt", {{"b", 8, {}}, {"s", 6, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", 4, {}}, {"v", 12, {}}},
      train::Optimizer::momentum);
  for (const std::string_view distribution :
       {"rank=2: slice h, f, v, s", "rank=2: slice s, ring attention", "rank=2: slice b; micro=2",
        "stage=2: stage; data=2: slice b; micro=4; schedule zb_h1",
        "stage=2: stage; data=2: slice b, shard parameters; micro=4",
        "stage=2: stage, chunks=2; micro=4; schedule interleaved"})
    expect_programs(gpt, distribution);
  const Learner experts = learner("mixtral_8x7b",
                                  {{"b", 4, {}},
                                   {"s", 4, {}},
                                   {"d", 8, {}},
                                   {"h", 2, {}},
                                   {"g", 1, {}},
                                   {"f", 8, {}},
                                   {"experts", 4, {}},
                                   {"layers", 2, {}},
                                   {"v", 12, {}}},
                                  train::Optimizer::adam);
  for (const std::string_view distribution :
       {"rank=2: slice b", "rank=2: slice x, b", "rank=2: slice b, shard parameters", "rank=2: slice f"})
    expect_programs(experts, distribution);
}

}  // namespace
}  // namespace weft::session
