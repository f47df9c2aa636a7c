// A slow rank computes long; a rank that waits for it does not.
#include <gtest/gtest.h>

#include "ranks_case.h"
#include "weft/runtime/run/step_times.h"

namespace weft::session {
namespace {

// A program with one exchange along each named axis; nothing of it runs.
program::Program exchanges(const std::vector<std::string>& axes) {
  program::Program program;
  for (const std::string& axis : axes) {
    program::Exchange exchange;
    exchange.axis = axis;
    program::Unit unit;
    unit.kernel = exchange;
    program.tasks.push_back({.unit = static_cast<std::uint32_t>(program.units.size())});
    program.units.push_back(std::move(unit));
  }
  return program;
}

TEST(StepTimes, AnExchangeTakesTheTimeOfTheLastToArrive) {
  const plan::Mesh mesh{{{"rank", 3}}};
  // Rank 1 computes four times as long; the others spend that time waiting in the exchange.
  const std::vector<std::vector<run::StepTimes>> steps = {{{1, {3.5}}, {1, {3.2}}, {9, {3.3}}},
                                                          {{4, {0.5}}, {4, {0.2}}, {4, {0.3}}},
                                                          {{2, {2.5}}, {1, {3}}, {1, {3}}}};
  const run::RankSpeeds speeds = run::speeds_of(exchanges({"rank"}), mesh, steps);
  EXPECT_EQ(speeds.compute, (std::vector<double>{1, 4, 1}));
  EXPECT_EQ(speeds.exchange, (std::vector<double>{0.3}));
}

TEST(StepTimes, UsesTheSlowestGroupOfAnAxis) {
  const plan::Mesh mesh{
      {{"host", 2}, {"rank", 2}}};  // groups along rank: 0 1 and 2 3; along host: 0 2 and 1 3
  const std::vector<std::vector<run::StepTimes>> steps = {
      {{1, {1, 10}}}, {{1, {2, 20}}}, {{1, {3, 30}}}, {{1, {4, 40}}}};
  const run::RankSpeeds speeds = run::speeds_of(exchanges({"rank", "host"}), mesh, steps);
  EXPECT_EQ(speeds.exchange, (std::vector<double>{20, 3}));
}

TEST(StepTimes, RoundTripThroughBytes) {
  const std::vector<run::StepTimes> steps = {{1.5, {0.25, 3}}, {2, {1, 0}}};
  const auto back = run::steps_from(run::to_bytes(steps), 2);
  ASSERT_EQ(back.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back[i].compute, steps[i].compute);
    EXPECT_EQ(back[i].exchanges, steps[i].exchanges);
  }
}

}  // namespace
}  // namespace weft::session
