// Schedules in seconds: right, deterministic, and near their bounds.
#include "weft/synthesis/time_schedule.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "weft/base/file.h"
#include "weft/collective/compile.h"
#include "weft/formats/topology_json.h"

namespace weft::synthesis {
namespace {

using collective::Kind;

const std::string kWires = WEFT_SOURCE_DIR "/../shared/corpus/ccl-topologies/";

// A ring of 1 GB/s both ways, a microsecond a hop.
StepNetwork timed_ring(std::int32_t devices) {
  cluster::Topology topology;
  for (std::int32_t i = 0; i < devices; ++i) topology.add_node(cluster::NodeKind::device, "gpu");
  topology.devices = devices;
  for (std::int32_t i = 0; i < devices; ++i) topology.add_cable(i, (i + 1) % devices, 1e9, 1e-6);
  auto network = step_network(topology);
  EXPECT_TRUE(network.ok());
  return std::move(network).value();
}

TEST(TimeSchedule, ABroadcastOnAPairIsExact) {
  // Two cables between the two: 2 GB/s. Three chunks of 2000 bytes take a microsecond each, then the latency.
  const StepNetwork network = timed_ring(2);
  const StepProblem problem = step_problem({Kind::broadcast, 0, 3, 1, 1}, 2);
  const TimeSchedule schedule = schedule_in_time(network, problem, 2000, {}, {});
  EXPECT_EQ(first_fault(network, problem, 2000, schedule), std::nullopt);
  EXPECT_NEAR(schedule.finish, 4e-6, 1e-12);
  EXPECT_NEAR(schedule.bound, 3e-6, 1e-12);
}

TEST(TimeSchedule, EveryCollectiveBecomesAProgram) {
  const StepNetwork network = timed_ring(5);
  for (const Kind kind : {Kind::all_gather, Kind::broadcast, Kind::gather, Kind::scatter, Kind::all_to_all}) {
    const StepQuestion question{kind, 1, kind == Kind::all_to_all ? 5 : 2, 1, 1};
    const StepProblem problem = step_problem(question, 5);
    const TimeSchedule schedule = schedule_in_time(network, problem, 1000, {}, {});
    EXPECT_EQ(first_fault(network, problem, 1000, schedule), std::nullopt) << name(kind);
    EXPECT_GE(schedule.gap(), -1e-9) << name(kind);
    const StepSchedule ordered = in_order(schedule);
    const auto program = collective::compile(step_moves(question, network, nullptr, &ordered));
    EXPECT_TRUE(program.ok()) << name(kind) << ": " << program.error().message;
  }
}

TEST(TimeSchedule, TheSameSeedFindsTheSame) {
  const StepNetwork network = timed_ring(6);
  const StepProblem problem = step_problem({Kind::all_gather, 0, 2, 1, 1}, 6);
  const TimeSchedule one = schedule_in_time(network, problem, 5000, {4, 3}, {});
  EXPECT_EQ(one.sends, schedule_in_time(network, problem, 5000, {4, 3}, {}).sends);
  EXPECT_EQ(one.turns, 4);
}

TEST(TimeSchedule, ThereIsAnAnswerWhenTheClockIsOver) {
  StepClock over;
  over.stop = [] { return true; };
  const StepNetwork network = timed_ring(4);
  const StepProblem problem = step_problem({Kind::all_gather, 0, 1, 1, 1}, 4);
  const TimeSchedule schedule = schedule_in_time(network, problem, 1000, {}, over);
  EXPECT_EQ(schedule.turns, 1);
  EXPECT_EQ(first_fault(network, problem, 1000, schedule), std::nullopt);
}

TEST(TimeSchedule, FaultsAreSeen) {
  const StepNetwork network = timed_ring(3);
  const StepProblem problem = step_problem({Kind::all_gather, 0, 1, 1, 1}, 3);
  const TimeSchedule right = schedule_in_time(network, problem, 1000, {}, {});
  ASSERT_EQ(first_fault(network, problem, 1000, right), std::nullopt);
  TimeSchedule lost = right;
  lost.sends.pop_back();
  EXPECT_NE(first_fault(network, problem, 1000, lost), std::nullopt);
  TimeSchedule hasty = right;
  hasty.sends[0].arrives /= 2;
  EXPECT_NE(first_fault(network, problem, 1000, hasty), std::nullopt);
  EXPECT_NE(first_fault(network, problem, 4000, right), std::nullopt);
}

TEST(TimeSchedule, LargeMessagesComeNearTheBoundOfTwoDgx2) {
  const std::string path = kWires + "teccl_DGX2_2chassis.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the corpus is not here";
  const auto text = read_file(path, 1 << 24);
  const auto topology = formats::read_topology_json(*text, path);
  ASSERT_TRUE(topology.ok());
  const auto network = step_network(*topology);
  ASSERT_TRUE(network.ok());
  const StepProblem problem = step_problem({Kind::all_gather, 0, 2, 1, 1}, 32);
  const TimeSchedule schedule = schedule_in_time(*network, problem, 1e9 / 64, {1, 1}, {});
  EXPECT_EQ(first_fault(*network, problem, 1e9 / 64, schedule), std::nullopt);
  EXPECT_LT(schedule.gap(), 0.05);
}

}  // namespace
}  // namespace weft::synthesis
