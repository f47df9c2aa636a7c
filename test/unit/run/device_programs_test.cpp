// Programs of ranks as a GPU has them, with updates joined and new values in place: they compile on any machine.
#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ranks_case.h"
#include "weft/run/fit_program.h"

namespace weft::session {
namespace {

void expect_programs(const Learner& learner, std::string_view distribution) {
  const distribute::DistributedPlan plan = spread(learner, distribution);
  for (std::int32_t rank = 0; rank < plan.mesh.ranks(); ++rank) {
    const auto fitted = run::fit_for_rank(plan, rank, run::rank_compiling(1, true), 0);
    ASSERT_TRUE(fitted.ok()) << distribution << ", rank " << rank << ": " << fitted.error().message;
  }
}

TEST(DevicePrograms, OfEveryRankUnderEveryOptimizer) {
  for (const train::Optimizer optimizer :
       {train::Optimizer::sgd, train::Optimizer::momentum, train::Optimizer::adam}) {
    const Learner gpt = learner(
        "char_gpt",
        {{"b", 4, {}}, {"s", 6, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", 2, {}}, {"v", 12, {}}}, optimizer);
    for (const std::string_view distribution :
         {"rank=2: slice b", "rank=2: slice h, f", "rank=3: slice v", "rank=2: slice b, shard optimizer",
          "rank=2: slice b, shard parameters", "data=2: slice b, shard parameters; tensor=2: slice h, f"})
      expect_programs(gpt, distribution);
  }
}

}  // namespace
}  // namespace weft::session
