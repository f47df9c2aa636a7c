// The exact optimum compared with all cuts, and trees that saturate it.
#include "weft/collectives/synthesis/forest.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "weft/collectives/check/check.h"
#include "weft/collectives/synthesis/logical_links.h"
#include "weft/collectives/synthesis/optimum.h"
#include "weft/collectives/synthesis/symmetry.h"
#include "weft/collectives/synthesis/tree_program.h"
#include "weft/collectives/synthesis/without.h"

namespace weft::synthesis {
namespace {

using cluster::NodeKind;
using cluster::Topology;
using collective::Kind;

Topology nodes(std::int32_t devices, std::int32_t switches) {
  Topology made;
  made.name = "small";
  for (std::int32_t d = 0; d < devices; ++d) made.add_node(NodeKind::device, "gpu " + std::to_string(d));
  for (std::int32_t s = 0; s < switches; ++s) made.add_node(NodeKind::switch_, "switch " + std::to_string(s));
  return made;
}

Topology ring(std::int32_t devices, double rate) {
  Topology made = nodes(devices, 0);
  for (std::int32_t d = 0; d < devices; ++d) made.add_cable(d, (d + 1) % devices, rate, 1e-6);
  return made;
}

// Boxes of devices with a switch each, one fast link per device, and one slow link to a common
// switch.
Topology boxes(std::int32_t count, std::int32_t inside, double fast, double slow) {
  Topology made = nodes(count * inside, count + 1);
  for (std::int32_t d = 0; d < count * inside; ++d) {
    made.add_cable(d, count * inside + d / inside, fast, 1e-6);
    made.add_cable(d, count * inside + count, slow, 3e-6);
  }
  return made;
}

// Random links, symmetric so that switches forward all they receive; a ring connects all devices.
Topology random_topology(std::mt19937& random, std::int32_t devices, std::int32_t switches) {
  Topology made = nodes(devices, switches);
  const std::int32_t all = devices + switches;
  const auto number = [&](std::int32_t most) {
    return static_cast<std::int32_t>(random() % static_cast<unsigned>(most));
  };
  for (std::int32_t n = 0; n < all; ++n) made.add_cable(n, (n + 1) % all, 1e9 * (1 + number(4)), 1e-6);
  for (std::int32_t extra = number(2 * all); extra > 0; --extra) {
    const std::int32_t a = number(all), b = number(all);
    if (a != b) made.add_cable(a, b, 1e9 * (1 + number(5)), 1e-6);
  }
  return made;
}

std::vector<std::int32_t> all_of(std::int32_t count) {
  std::vector<std::int32_t> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

// The minimum over all cuts, one by one.
double least_cut(const Wires& wires, const std::vector<std::int32_t>& roots) {
  double least = 1e300;
  for (std::uint32_t side = 1; side < (1u << wires.nodes); ++side) {
    const auto inside = [&](std::int32_t node) { return (side >> node & 1u) != 0; };
    bool misses = false;
    for (std::int32_t g = 0; g < wires.gpus; ++g) misses = misses || !inside(g);
    double held = 0, leaves = 0;
    for (const std::int32_t root : roots) held += inside(root) ? 1 : 0;
    if (!misses || held == 0) continue;
    for (const Wire& wire : wires.wires)
      if (inside(wire.from) && !inside(wire.to)) leaves += static_cast<double>(wire.capacity);
    least = std::min(least, leaves / held);
  }
  return least;
}

// Every tree spans all devices from its root, and no link carries more trees than its capacity.
void expect_packed(const LogicalLinks& links, const Packing& packing, std::int32_t roots, Amount each) {
  ASSERT_TRUE(packing.complete);
  std::vector<Amount> used(links.links.size(), 0);
  std::map<std::int32_t, Amount> of_root;
  for (const Tree& tree : packing.trees) {
    of_root[tree.root] += tree.times;
    std::vector<bool> reached(static_cast<std::size_t>(links.gpus), false);
    reached[static_cast<std::size_t>(tree.root)] = true;
    for (const TreeEdge& edge : tree.edges) {
      EXPECT_TRUE(reached[static_cast<std::size_t>(edge.from)]);
      EXPECT_FALSE(reached[static_cast<std::size_t>(edge.to)]);
      reached[static_cast<std::size_t>(edge.to)] = true;
      used[static_cast<std::size_t>(edge.link)] += tree.times;
    }
    EXPECT_EQ(tree.edges.size() + 1, reached.size());
  }
  EXPECT_EQ(of_root.size(), static_cast<std::size_t>(roots));
  for (const auto& [root, times] : of_root) EXPECT_EQ(times, each);
  for (std::size_t l = 0; l < used.size(); ++l) EXPECT_LE(used[l], links.links[l].capacity);
}

TEST(SynthesisOptimum, IsTheMinimumOfAllCuts) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const auto devices = static_cast<std::int32_t>(2 + random() % 6),
               switches = static_cast<std::int32_t>(random() % 4);
    const Topology topology = random_topology(random, devices, switches);
    const auto wires = wires_of(topology);
    ASSERT_TRUE(wires.ok());
    const std::vector<std::int32_t> roots = trial % 3 == 0 ? std::vector<std::int32_t>{1} : all_of(devices);
    EXPECT_DOUBLE_EQ(find_optimum(*wires, roots).rate.value(), least_cut(*wires, roots)) << trial;
  }
}

TEST(SynthesisOptimum, TreesAttainIt) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 60; ++trial) {
    const auto devices = static_cast<std::int32_t>(2 + random() % 6),
               switches = static_cast<std::int32_t>(random() % 4);
    const Topology topology = random_topology(random, devices, switches);
    const auto wires = wires_of(topology);
    ASSERT_TRUE(wires.ok());
    const std::vector<std::int32_t> roots = all_of(devices);
    const Ratio rate = find_optimum(*wires, roots).rate;
    const LogicalLinks links = remove_switches(*wires, roots, rate);
    EXPECT_TRUE(links.whole) << trial;
    for (const LogicalLink& link : links.links) {
      Amount lanes = 0;
      for (const Lane& lane : link.lanes) lanes += lane.amount;
      EXPECT_EQ(lanes, link.capacity);
    }
    expect_packed(links, pack_trees(links, roots, rate.over), devices, rate.over);
  }
}

// Every lane uses links of the topology from one device to the other.
TEST(SynthesisOptimum, LanesUseRealLinks) {
  const Topology topology = boxes(2, 3, 30e9, 5e9);
  const auto wires = wires_of(topology);
  const std::vector<std::int32_t> roots = all_of(6);
  const LogicalLinks links = remove_switches(*wires, roots, find_optimum(*wires, roots).rate);
  for (const LogicalLink& link : links.links)
    for (const Lane& lane : link.lanes) {
      std::int32_t node = link.from;
      for (const std::int32_t l : lane.links) {
        EXPECT_EQ(topology.links[static_cast<std::size_t>(l)].from, node);
        node = topology.links[static_cast<std::size_t>(l)].to;
      }
      EXPECT_EQ(node, link.to);
    }
}

// 8 devices, 50 GB/s in each direction: 7/8 of the result arrives over two links, 8/7 * 100.
TEST(SynthesisForest, HandlesARing) {
  const auto forest = grow_forest(ring(8, 50e9), Kind::all_gather, 0);
  ASSERT_TRUE(forest.ok());
  EXPECT_NEAR(forest->optimum, 8.0 / 7 * 100e9, 1);
  EXPECT_NEAR(forest->planned, forest->optimum, 1);
  const auto both = grow_forest(ring(8, 50e9), Kind::all_reduce, 0);
  EXPECT_NEAR(both->optimum, 4.0 / 7 * 100e9, 1);
  EXPECT_NEAR(grow_forest(ring(8, 50e9), Kind::broadcast, 3)->optimum, 100e9, 1);
}

// The data of a box leaves over slow links: 4 * 5 GB/s for the blocks of 12 others.
TEST(SynthesisForest, HandlesBoxes) {
  const auto forest = grow_forest(boxes(4, 4, 60e9, 5e9), Kind::all_gather, 0);
  ASSERT_TRUE(forest.ok());
  EXPECT_NEAR(forest->optimum, 16 * 20e9 / 12, 1);
  EXPECT_GE(forest->planned, 0.99 * forest->optimum);
}

TEST(SynthesisForest, EveryKindGivesACorrectProgram) {
  std::mt19937 random(3);
  for (const Kind kind :
       {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::broadcast, Kind::reduce})
    for (int trial = 0; trial < 4; ++trial) {
      const Topology topology = trial == 0   ? ring(6, 10e9)
                                : trial == 1 ? boxes(2, 4, 40e9, 5e9)
                                             : random_topology(random, 5, 1);
      const auto forest = grow_forest(topology, kind, 1);
      ASSERT_TRUE(forest.ok());
      TreeProgram request;
      request.chunks = 3 * forest->trees;
      request.pace.chunk_bytes = 1e5;
      request.pace.seconds = 1e5 * static_cast<double>(request.chunks * forest->ranks) / forest->planned;
      const auto program = tree_program(request, *forest);
      ASSERT_TRUE(program.ok());
      const collective::Report report = collective::check(*program, {.slots = 2});
      EXPECT_FALSE(report.finding) << collective::name(kind) << " " << trial << ": "
                                   << print(*report.finding);
    }
}

TEST(SynthesisSymmetry, IsFoundInTorusAndBoxes) {
  EXPECT_TRUE(find_symmetry(*wires_of(ring(12, 1e9))));
  EXPECT_TRUE(find_symmetry(*wires_of(boxes(3, 4, 2e9, 1e9))));
  Topology lame = ring(12, 1e9);
  lame.links.front().bytes_per_second = 2e9;
  EXPECT_FALSE(find_symmetry(*wires_of(lame)));
}

// Trees of root 0, shifted to all roots, stay within the capacity of every link.
TEST(SynthesisSymmetry, ShiftedTreesFitTheLinks) {
  Topology torus = nodes(20, 0);
  for (std::int32_t d = 0; d < 20; ++d) {
    torus.add_cable(d, d / 5 * 5 + (d + 1) % 5, 1e9, 1e-6);
    torus.add_cable(d, (d + 5) % 20, 1e9, 1e-6);
  }
  const auto wires = wires_of(torus);
  const auto symmetry = find_symmetry(*wires);
  ASSERT_TRUE(symmetry);
  const Ratio rate = find_optimum(*wires, all_of(20)).rate;
  const auto trees = grow_orbit(*wires, *symmetry, rate, 16);
  ASSERT_TRUE(trees);
  std::map<std::pair<std::int32_t, std::int32_t>, double> used;
  for (const Tree& tree : trees->trees)
    for (const TreeEdge& edge : tree.edges)
      used[{edge.from, edge.to}] += rate.value() * trees->efficiency / static_cast<double>(trees->each);
  for (const auto& [ends, load] : used) EXPECT_LE(load, 1 + 1e-9);
}

TEST(SynthesisForest, RejectsADisconnectedTopology) {
  const auto message = [](const Topology& topology) {
    const auto forest = grow_forest(topology, Kind::all_gather, 0);
    return forest.ok() ? std::string("fine") : forest.error().message;
  };
  Topology apart = nodes(4, 0);
  apart.add_cable(0, 1, 1e9, 0);
  apart.add_cable(2, 3, 1e9, 0);
  EXPECT_EQ(message(apart), "gpu 0 and gpu 2 are not connected");
  Topology one_way = nodes(2, 0);
  one_way.add_link(0, 1, 1e9, 0);
  EXPECT_EQ(message(one_way), "there is a path from gpu 0 to gpu 1 but none back");
  Topology idle = ring(3, 1e9);
  idle.add_node(NodeKind::switch_, "hub");
  EXPECT_EQ(message(idle), "hub is not connected to any device");
  EXPECT_EQ(message(nodes(1, 0)), "a collective needs two devices or more, found 1");
  EXPECT_EQ(message(ring(3, -1)), "link 0 must have a positive bandwidth, found -1 bytes per second");
}

// A one-way ring is still a ring.
TEST(SynthesisForest, AcceptsOneWayLinks) {
  Topology circle = nodes(4, 0);
  for (std::int32_t d = 0; d < 4; ++d) circle.add_link(d, (d + 1) % 4, 3e9, 0);
  EXPECT_NEAR(grow_forest(circle, Kind::all_gather, 0)->planned, 4e9, 1);
}

TEST(SynthesisWithout, RemovesLinksAndDevices) {
  const Topology whole = ring(6, 10e9);
  const auto cut = without(whole, "link:2-3");
  ASSERT_TRUE(cut.ok());
  EXPECT_NEAR(grow_forest(*cut, Kind::all_gather, 0)->optimum, 12e9, 1);
  const auto fewer = without(boxes(2, 4, 40e9, 5e9), "gpu:5");
  ASSERT_TRUE(fewer.ok());
  EXPECT_EQ(grow_forest(*fewer, Kind::all_gather, 0)->ranks, 7);
  EXPECT_FALSE(without(whole, "link:0-3").ok());
  EXPECT_FALSE(without(whole, "gpu:6").ok());
  EXPECT_FALSE(without(whole, "disk:1").ok());
  EXPECT_FALSE(without(whole, "link:").ok());
}

TEST(SynthesisForest, StopsAtTheDeadline) {
  const auto forest = grow_forest(boxes(4, 8, 40e9, 5e9), Kind::all_gather, 0, Deadline::after(0));
  ASSERT_FALSE(forest.ok());
  EXPECT_EQ(forest.error().message, "time ran out before the optimum was known");
}

}  // namespace
}  // namespace weft::synthesis
