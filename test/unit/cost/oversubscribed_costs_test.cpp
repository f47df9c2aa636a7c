// Cost of tasks if ranks outnumber the processors: independent of which rank ran first.
#include "weft/predict/cost/oversubscribed_costs.h"

#include <gtest/gtest.h>

namespace weft::cost {
namespace {

// A computing task, then a collective.
program::Program program_of() {
  program::Program program;
  program.graph = std::make_shared<const plan::Graph>();
  program.units.resize(2);
  program.units[0].kernel = program::Copy();
  program::Exchange exchange;
  exchange.axis = "rank";
  exchange.counts = {4};
  program.units[1].kernel = exchange;
  program.tasks = {{.unit = 0, .begin = 0, .end = 1}, {.unit = 1, .begin = 0, .end = 1}};
  return program;
}

std::vector<std::vector<program::Timeline>> costs_of(const program::Program& program,
                                                     const std::vector<std::vector<program::TaskTime>>& tasks,
                                                     int processors) {
  std::vector<std::vector<program::Timeline>> timelines;
  for (const auto& rank : tasks) timelines.push_back({{rank, 0}});
  std::vector<RankSteps> ranks;
  for (const auto& rank : timelines) ranks.push_back({&program, rank});
  return oversubscribed_costs(ranks, {.ranks = static_cast<int>(tasks.size())}, processors);
}

double seconds(const program::Timeline& timeline, std::size_t task) {
  return timeline.tasks[task].end - timeline.tasks[task].begin;
}

TEST(OversubscribedCostsTest, WaitingForAProcessorCostsAsMuchAsSharingIt) {
  const program::Program program = program_of();
  // Two processors, four ranks with three seconds of work each, then a collective of one second.
  const auto together =
      costs_of(program, {{{0, 6}, {6, 7}}, {{0, 6}, {6, 7}}, {{0, 6}, {6, 7}}, {{0, 6}, {6, 7}}}, 2);
  const auto in_turns =
      costs_of(program, {{{0, 3}, {3, 7}}, {{0, 3}, {3, 7}}, {{3, 6}, {6, 7}}, {{3, 6}, {6, 7}}}, 2);
  for (const auto& costs : {together, in_turns}) {
    double exchange = 0;
    for (const auto& rank : costs) {
      EXPECT_DOUBLE_EQ(seconds(rank[0], 0), 6);
      exchange += seconds(rank[0], 1) / 4;
    }
    EXPECT_DOUBLE_EQ(exchange, 1);  // so the parts add up to the step
  }
}

TEST(OversubscribedCostsTest, IdleProcessorsCountAsCollectiveTime) {
  // One rank has twice the work: while it runs alone, half of the machine waits for it.
  const auto costs = costs_of(program_of(), {{{0, 2}, {2, 4}}, {{0, 4}, {4, 4}}}, 2);
  EXPECT_DOUBLE_EQ(seconds(costs[0][0], 0), 2);
  EXPECT_DOUBLE_EQ(seconds(costs[1][0], 0), 4);
  EXPECT_DOUBLE_EQ(seconds(costs[0][0], 1), 2);  // one of two ranks waits two seconds on an idle processor
  EXPECT_DOUBLE_EQ(seconds(costs[1][0], 1), 0);
}

TEST(OversubscribedCostsTest, IsEmptyWithoutTasks) {
  EXPECT_TRUE(oversubscribed_costs({}, {}, 1).empty());
  const program::Program program = program_of();
  const std::vector<RankSteps> none = {{&program, {}}};
  EXPECT_TRUE(oversubscribed_costs(none, {}, 1)[0].empty());
}

}  // namespace
}  // namespace weft::cost
