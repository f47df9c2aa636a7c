// Ranks that change to another plan between two steps, and ranks that continue from the state of
// others.
#include <signal.h>

#include <optional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "children.h"
#include "ranks_case.h"

namespace weft::session {
namespace {

using comm::TransportKind;

Learner small_mlp() {
  return learner("digits_mlp", {{"b", 12, {}}, {"p", 8, {}}, {"f", 12, {}}, {"c", 5, {}}},
                 train::Optimizer::adam);
}

// `count` more steps, from where another run ended.
run::DistributedRun more(std::int64_t first, std::int64_t count) {
  run::DistributedRun run = steps(count);
  run.training.first_step = first;
  return run;
}

TEST(ElasticRanks, ChangesThePlanBetweenTwoSteps) {
  const Learner mlp = small_mlp();
  const auto before = spread(mlp, "rank=3: slice b, shard parameters"),
             after = spread(mlp, "rank=3: slice f");
  run::DistributedRun run = steps(20);
  run.look_every = 4;
  std::vector<run::RankSpeeds> seen;
  run.on_speeds = [&](std::int64_t step, const run::RankSpeeds& speeds) {
    seen.push_back(speeds);
    return step == 8;
  };
  for (const TransportKind transport : {TransportKind::inproc, TransportKind::automatic}) {
    seen.clear();
    const auto first = run::run_distributed(before, on(3, transport), *mlp.feed, from_seed(7), run);
    ASSERT_TRUE(first.ok()) << first.error().message;
    EXPECT_TRUE(first->changes_plan);
    EXPECT_EQ(first->training.steps_done, 8);
    ASSERT_EQ(seen.size(), 2u);
    ASSERT_EQ(seen[0].compute.size(), 3u);
    for (const double seconds : seen[0].compute) EXPECT_GT(seconds, 0);
    ASSERT_EQ(seen[0].exchange.size(), 1u);
    EXPECT_GT(seen[0].exchange[0], 0);

    // The same plan gives results bitwise equal to an uninterrupted run; another plan gives them up
    // to rounding.
    const auto same = run::run_distributed(before, on(3, transport), *mlp.feed, first->weights, more(8, 12));
    ASSERT_TRUE(same.ok()) << same.error().message;
    const run::DistributedOutcome whole = train(mlp, before, on(3, transport), 20);
    expect_same_bits(same->weights, whole.weights);
    const auto other = run::run_distributed(after, on(3, transport), *mlp.feed, first->weights, more(8, 12));
    ASSERT_TRUE(other.ok()) << other.error().message;
    EXPECT_LT(apart(other->weights, whole.weights).relative, 1e-4);
    EXPECT_FALSE(other->changes_plan);
  }
}

// The state held by the remaining ranks when rank 2 of three was killed; nothing if they could not
// assemble it.
std::optional<run::Weights> rescued(const Learner& learner, std::string_view distribution,
                                    std::int64_t keep_every) {
  run::DistributedRun run = steps(1'000'000);
  std::optional<run::Weights> found;
  bool died = false;
  run.keep_every = keep_every;
  run.on_rescue = [&](run::Weights weights) { found = std::move(weights); };
  run.on_death = [&] { died = true; };
  run.training.on_step = [&](const run::StepReport& report) -> Status {
    if (report.step != 9) return {};
    const std::vector<pid_t> ranks = children();
    if (ranks.size() != 2) return user_error("not two");
    kill(ranks[1], SIGKILL);
    return {};
  };
  const auto outcome = run::run_distributed(spread(learner, distribution), on(3, TransportKind::automatic),
                                            *learner.feed, from_seed(7), run);
  EXPECT_FALSE(outcome.ok());
  EXPECT_TRUE(died) << outcome.error().message;
  return found;
}

TEST(ElasticRanks, RestoresReplicatedStateOfAFailedRank) {
  const Learner mlp = small_mlp();
  const std::string_view distribution = "rank=3: slice b";
  for (const std::int64_t every : {1, 4}) {
    const auto found = rescued(mlp, distribution, every);
    ASSERT_TRUE(found.has_value()) << every;
    EXPECT_GE(found->step, 9 - every);
    EXPECT_EQ(found->step % every, 0);
    const run::DistributedOutcome never_died = train(mlp, distribution, on(3), found->step);
    expect_same_bits(*found, never_died.weights);
  }
}

TEST(ElasticRanks, LosesStateHeldOnlyByAFailedRank) {
  EXPECT_FALSE(rescued(small_mlp(), "rank=3: slice b, shard parameters", 1).has_value());
}

}  // namespace
}  // namespace weft::session
