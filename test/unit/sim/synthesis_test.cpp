// Random topologies: every collective has a correct program that attains what the links allow.
#include "weft/predict/sim/collective/tuned_program.h"

#include <string>

#include <gtest/gtest.h>

#include "../case/thorough.h"
#include "weft/base/random.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/one_sided/check_work.h"
#include "weft/predict/sim/collective/run_parameters.h"
#include "weft/predict/sim/collective/simulate_collective.h"

namespace weft::sim {
namespace {

using cluster::NodeKind;
using cluster::Topology;
using collective::Kind;

constexpr std::int64_t kBytes = 1'000'000'000;

// Devices on a ring with chords, on switches, or both; links of 10 to 300 GB/s, symmetric or not.
// Short runs have fewer devices and a tenth of the rates, so that coarse programs, which simulate
// quickly, are good enough.
struct WiresCase {
  const char* name;
  bool direct, switched, one_way;
  std::int32_t switches;
};
constexpr WiresCase kCases[] = {{"direct", true, false, false, 0}, {"one way", true, false, true, 0},
                                {"star", false, true, false, 1},   {"switches", false, true, false, 3},
                                {"mixed", true, true, false, 2},   {"uneven switches", false, true, true, 2},
                                {"all of it", true, true, true, 2}};

Topology random_wires(const WiresCase& kind, std::uint64_t seed) {
  Random random(seed);
  Topology made;
  made.name = kind.name;
  const auto devices = static_cast<std::int32_t>(random.between(6, thorough_or(12, 7)));
  for (std::int32_t d = 0; d < devices; ++d) made.add_node(NodeKind::device, "gpu " + std::to_string(d));
  for (std::int32_t s = 0; s < kind.switches; ++s)
    made.add_node(NodeKind::switch_, "switch " + std::to_string(s));
  const auto rate = [&] { return thorough_or(1e8, 1e7) * static_cast<double>(random.between(100, 3000)); };
  const auto cable = [&](std::int32_t a, std::int32_t b) {
    const double there = rate();
    made.add_link(a, b, there, 0.7e-6);
    made.add_link(b, a, kind.one_way ? rate() : there, 0.7e-6);
  };
  if (kind.direct) {
    for (std::int32_t d = 0; d < devices; ++d) cable(d, (d + 1) % devices);
    for (std::int64_t chord = random.between(devices / 2, 2 * devices); chord > 0; --chord) {
      const auto a = static_cast<std::int32_t>(random.between(0, devices - 1));
      cable(a, static_cast<std::int32_t>((a + random.between(1, devices - 1)) % devices));
    }
  }
  for (std::int32_t s = 0; s < kind.switches; ++s) {
    for (std::int32_t d = 0; d < devices; ++d)
      if (s == 0 || random.between(0, 1) == 0) cable(d, devices + s);
    if (s > 0) cable(devices + s - 1, devices + s);
  }
  return made;
}

void expect_near(const Topology& topology, Kind kind, std::uint64_t seed) {
  const std::string what = topology.name + " " + std::to_string(seed) + ", " + std::string(name(kind));
  double optimum = 0;
  Result<TunedProgram> made = user_error("not yet");
  if (kind == Kind::all_to_all) {
    const auto ways = synthesis::route_all_to_all(topology);
    ASSERT_TRUE(ways.ok()) << what << ": " << ways.error().message;
    EXPECT_GE(ways->flow, 0.999 * ways->bound) << what;
    optimum = ways->bound;
    made = tune_paths(topology, *ways, {}, kBytes);
  } else {
    const auto forest = synthesis::grow_forest(topology, kind, 0);
    ASSERT_TRUE(forest.ok()) << what << ": " << forest.error().message;
    EXPECT_GE(forest->planned, 0.99 * forest->optimum) << what;
    optimum = forest->optimum;
    made = tune_trees(topology, *forest, {}, kBytes);
  }
  ASSERT_TRUE(made.ok()) << what << ": " << made.error().message;
  // A gigabyte at more than 200 GB/s takes less than 5 ms, of which filling and draining the trees
  // is a notable part.
  EXPECT_GE(made->attained, (optimum > 200e9 ? 0.9 : 0.95) * optimum)
      << what << ": " << made->attained / optimum;
  const collective::Program& program = made->program;
  EXPECT_TRUE(collective::check_work(program, 1).ok()) << what;
  const auto report = collective::check(program, {.slots = run_parameters(program.protocol).slots});
  EXPECT_FALSE(report.finding) << what << ": " << print(*report.finding);
  // The printed program is the one that was simulated.
  const auto again = collective::parse_program(collective::print(program));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(*again == program) << what;
}

TEST(SynthesisOnRandomWires, AttainsTheOptimum) {
  std::uint64_t seed = 0;
  constexpr Kind kKinds[] = {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::broadcast,
                             Kind::all_to_all};
  for (int round = 0; round < thorough_or(6, 1); ++round)
    for (const WiresCase& wires : every(2, kCases)) {
      const Topology topology = random_wires(wires, ++seed);
      for (const Kind kind : kKinds)
        if (is_thorough() || kind == kKinds[seed % std::size(kKinds)]) expect_near(topology, kind, seed);
    }
}

// A program names the routes that it was made for, and is rejected on a topology that lacks them.
TEST(SynthesisOnRandomWires, RoutesBelongToTheirTopology) {
  Topology topology;
  for (std::int32_t d = 0; d < 3; ++d) topology.add_node(NodeKind::device, "gpu " + std::to_string(d));
  topology.add_node(NodeKind::switch_, "hub");
  for (std::int32_t d = 0; d < 3; ++d) topology.add_cable(d, (d + 1) % 3, 20e9, 0.7e-6);
  for (std::int32_t d = 0; d < 3; ++d) topology.add_cable(d, 3, 100e9, 0.7e-6);
  const auto forest = synthesis::grow_forest(topology, Kind::all_gather, 0);
  ASSERT_TRUE(forest.ok()) << forest.error().message;
  EXPECT_NEAR(forest->optimum, 210e9, 1e6);  // 140 GB/s reach a device, of three blocks the two it lacks
  const auto made = tune_trees(topology, *forest, {}, kBytes);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_GE(made->attained, 0.95 * forest->optimum);
  topology.links.resize(6);
  const auto actions =
      collective::to_actions(made->program, collective::Placement::in_place, collective::Grain::step);
  const auto refused = simulate(actions, topology, kBytes, run_parameters(collective::Protocol::simple));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("which is not a path on"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace weft::sim
