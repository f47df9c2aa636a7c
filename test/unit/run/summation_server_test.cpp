// Ranks whose gradients are summed with the help of servers: training gives the same results as
// without.
#include <signal.h>

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "children.h"
#include "ranks_case.h"
#include "weft/collectives/algorithm/summation_service.h"
#include "weft/predict/cost/choose_algorithms.h"

namespace weft::session {
namespace {

using comm::TransportKind;
using distribute::DistributedPlan;

Learner odd_mlp() {
  return learner("digits_mlp", {{"b", 11, {}}, {"p", 7, {}}, {"f", 13, {}}, {"c", 5, {}}},
                 train::Optimizer::adam);
}

// All its all-reduces use servers.
run::LocalRanksOptions served(const DistributedPlan& plan, std::int32_t servers,
                              std::int32_t most = collective::kMostSplitChunks,
                              TransportKind transport = TransportKind::inproc) {
  run::LocalRanksOptions options = on(plan.mesh.ranks(), transport);
  const program::Program program = run::compile_for_rank(plan, 0, {.workers = options.workers}).value();
  options.algorithms = cost::algorithms_of(program);
  std::size_t next = 0;
  for (const program::Unit& unit : program.units) {
    const auto* const exchange = std::get_if<program::Exchange>(&unit.kernel);
    if (exchange == nullptr) continue;
    const auto axis = static_cast<std::size_t>(plan.mesh.find(exchange->axis));
    const auto service = collective::best_split(plan.mesh.axes[axis].ranks, servers, 1, most);
    if (exchange->kind == program::Exchange::Kind::all_reduce)
      options.algorithms[next].name = collective::print(service);
    ++next;
  }
  return options;
}

TEST(SummationServers, AgreeWithOneRank) {
  const Learner mlp = odd_mlp();
  constexpr std::int64_t kSteps = 3;
  const auto alone = train_alone(mlp, kSteps);
  for (const std::string_view distribution :
       {"rank=3: slice b", "data=2: slice b; tensor=2: slice f", "rank=3: slice b, shard optimizer"}) {
    SCOPED_TRACE(distribution);
    const DistributedPlan plan = spread(mlp, distribution);
    std::optional<run::Weights> first;
    // The sum is always in rank order, so results are bitwise equal for any number of servers.
    for (const auto& [servers, most] : {std::pair{1, 16}, {3, 2}}) {
      SCOPED_TRACE(testing::Message() << servers << " servers, parts of " << most);
      const auto learned = train(mlp, plan, served(plan, servers, most), kSteps);
      EXPECT_LT(apart(learned.weights, alone.weights).relative, 1e-4)
          << apart(learned.weights, alone.weights).worst;
      if (!first) first = learned.weights;
      expect_same_bits(learned.weights, *first);
    }
  }
}

TEST(SummationServers, RunAsProcesses) {
  const Learner mlp = odd_mlp();
  const DistributedPlan plan = spread(mlp, "rank=2: slice b");
  const auto threads = train(mlp, plan, served(plan, 2), 5);
  for (const TransportKind transport : {TransportKind::automatic, TransportKind::tcp}) {
    const auto processes = train(mlp, plan, served(plan, 2, 16, transport), 5);
    expect_same_bits(processes.weights, threads.weights);
    EXPECT_EQ(processes.training.last_loss, threads.training.last_loss);
  }
}

TEST(SummationServers, NamesAFailedServerOrRank) {
  const Learner mlp = odd_mlp();
  const DistributedPlan plan = spread(mlp, "rank=2: slice b");
  for (const std::size_t victim : {std::size_t{1}, std::size_t{2}}) {
    run::DistributedRun run = steps(1'000'000);
    bool died = false;
    run.on_death = [&] { died = true; };
    run.training.on_step = [&](const run::StepReport& report) -> Status {
      if (report.step != 4) return {};
      const std::vector<pid_t> others = children();  // rank 1, server 0, server 1
      if (others.size() != 3) return user_error("not three");
      kill(others[victim], SIGKILL);
      return {};
    };
    const auto outcome = run::run_distributed(plan, served(plan, 2, 16, TransportKind::automatic), *mlp.feed,
                                              from_seed(7), run);
    ASSERT_FALSE(outcome.ok());
    EXPECT_TRUE(died);
    EXPECT_TRUE(outcome.error().message.starts_with(fmt::format("server {} failed in step ", victim - 1)))
        << outcome.error().message;
  }
}

TEST(SummationServers, StateOfRanksSurvivesAFailedServer) {
  const Learner mlp = odd_mlp();
  const DistributedPlan plan = spread(mlp, "rank=2: slice b");
  run::DistributedRun run = steps(1'000'000);
  run.keep_every = 1;
  std::optional<run::Weights> found;
  run.on_rescue = [&](run::Weights weights) { found = std::move(weights); };
  run.training.on_step = [&](const run::StepReport& report) -> Status {
    if (report.step == 6) kill(children().back(), SIGKILL);
    return {};
  };
  const auto outcome =
      run::run_distributed(plan, served(plan, 1, 16, TransportKind::automatic), *mlp.feed, from_seed(7), run);
  ASSERT_FALSE(outcome.ok());
  ASSERT_TRUE(found.has_value()) << outcome.error().message;
  EXPECT_GE(found->step, 5);
  const auto never_died = train(mlp, plan, served(plan, 1), found->step);
  expect_same_bits(*found, never_died.weights);
}

}  // namespace
}  // namespace weft::session
