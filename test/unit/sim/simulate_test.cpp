// The simulator of collectives, compared with times computed by hand.
#include "weft/predict/sim/collective/simulate_collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "weft/predict/sim/collective/cost_table.h"
#include "weft/predict/sim/network.h"

namespace weft::sim {
namespace {

using cluster::NodeKind;
using cluster::Topology;
using collective::Action;
using collective::Actions;
using collective::Buffer;
using collective::Cell;
using collective::Kind;

constexpr double kRate = 100e9, kLatency = 1e-6;

Topology line(int devices, double rate = kRate, double latency = kLatency) {
  Topology topology;
  topology.name = "line";
  for (int d = 0; d < devices; ++d) topology.add_node(NodeKind::device, "gpu " + std::to_string(d));
  for (int d = 0; d + 1 < devices; ++d) topology.add_cable(d, d + 1, rate, latency);
  return topology;
}

Topology ring(int devices, double rate = kRate, double latency = kLatency) {
  Topology topology = line(devices, rate, latency);
  topology.name = "ring";
  if (devices > 2) topology.add_cable(devices - 1, 0, rate, latency);
  return topology;
}

// Records the actions of agents, one after another.
class Script {
 public:
  Script(Kind kind, int ranks, int chunks) {
    actions.collective.kind = kind;
    actions.collective.ranks = ranks;
    actions.collective.chunks = chunks;
    actions.memory.resize(static_cast<std::size_t>(ranks));
  }

  // Begins an agent, to which the following actions belong.
  int agent(int rank) {
    const auto at = static_cast<std::int32_t>(actions.actions.size());
    actions.agents.push_back({rank, blocks_[rank]++, at, at});
    return static_cast<int>(actions.agents.size()) - 1;
  }
  Action& act(int count = 1) {
    auto& agent = actions.agents.back();
    Action action;
    action.agent = static_cast<std::int32_t>(actions.agents.size()) - 1;
    action.step = agent.end - agent.first;
    action.count = count;
    action.first_cell = static_cast<std::int32_t>(actions.cells.size());
    agent.end++;
    return actions.actions.emplace_back(action);
  }
  // An action with one local source (a send, or the operand of a reduction) or one local target.
  Action& with_cells(Action& action, std::vector<Cell> sources, std::vector<Cell> targets) {
    action.sources = static_cast<std::int16_t>(sources.size());
    action.targets = static_cast<std::int16_t>(targets.size());
    for (const Cell& cell : sources) actions.cells.push_back(cell);
    for (const Cell& cell : targets) actions.cells.push_back(cell);
    return action;
  }
  Cell own(int index = 0) const { return {actions.agents.back().rank, Buffer::input, false, index}; }
  void send(int to, int count = 1, int channel = 0) {
    with_cells(act(count), {own()}, {}).give = connect(actions.agents.back().rank, to, channel, true);
  }
  void receive(int from, int count = 1, int channel = 0) {
    with_cells(act(count), {}, {own()}).take = connect(from, actions.agents.back().rank, channel, false);
  }
  void forward(int from, int to, bool adds) {
    Action& action = with_cells(act(), adds ? std::vector<Cell>{own()} : std::vector<Cell>{}, {own()});
    action.take = connect(from, actions.agents.back().rank, 0, false);
    action.give = connect(actions.agents.back().rank, to, 0, true);
  }
  void add(int from) {
    with_cells(act(), {own()}, {own()}).take = connect(from, actions.agents.back().rank, 0, false);
  }
  int counter(int rank, int initial = 0) {
    actions.counters.push_back({initial, rank, 0, "a signal"});
    return static_cast<int>(actions.counters.size()) - 1;
  }

  Actions actions;

 private:
  int connect(int from, int to, int channel, bool gives) {
    const auto [found, fresh] =
        connections_.try_emplace({from, to, channel}, static_cast<int>(actions.connections.size()));
    if (fresh) actions.connections.push_back({from, to, channel, -1, -1});
    auto& end = gives ? actions.connections[static_cast<std::size_t>(found->second)].giver
                      : actions.connections[static_cast<std::size_t>(found->second)].taker;
    end = static_cast<std::int32_t>(actions.agents.size()) - 1;
    return found->second;
  }

  std::map<std::tuple<int, int, int>, int> connections_;
  std::map<int, int> blocks_;
};

Actions ring_all_reduce(int ranks) {
  Script script(Kind::all_reduce, ranks, ranks);
  for (int r = 0; r < ranks; ++r) {
    const int next = (r + 1) % ranks, previous = (r + ranks - 1) % ranks;
    script.agent(r);
    script.send(next);
    for (int step = 0; step < 2 * ranks - 3; ++step) script.forward(previous, next, step < ranks - 1);
    script.receive(previous);
  }
  return script.actions;
}

// 0 sends to 1, which forwards, and so on.
Actions chain_broadcast(int ranks) {
  Script script(Kind::broadcast, ranks, 1);
  script.agent(0);
  script.send(1);
  for (int r = 1; r + 1 < ranks; ++r) {
    script.agent(r);
    script.forward(r - 1, r + 1, false);
  }
  script.agent(ranks - 1);
  script.receive(ranks - 2);
  return script.actions;
}

RunParameters bare() { return {}; }

CollectiveTime time(const Actions& actions, const Topology& topology, std::int64_t bytes,
                    const RunParameters& parameters = bare(), Timeline timeline = Timeline::no) {
  auto result = simulate(actions, topology, bytes, parameters, timeline);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? std::move(result).value() : CollectiveTime{};
}

TEST(Simulate, AMessageTakesItsBytesAndOneLatency) {
  Script script(Kind::send, 2, 1);
  script.actions.collective.peer = 1;
  script.agent(0);
  script.send(1);
  script.agent(1);
  script.receive(0);
  EXPECT_NEAR(time(script.actions, line(2), 1'000'000).seconds, 1e6 / kRate + kLatency, 1e-12);
  RunParameters parameters;
  parameters.launch_seconds = 5e-6;
  parameters.step_seconds = 1e-7;
  parameters.message_seconds = 3e-7;
  parameters.efficiency = 0.5;
  // Two steps, one at each end, and twice the bytes.
  EXPECT_NEAR(time(script.actions, line(2), 1'000'000, parameters).seconds,
              5e-6 + 2e-7 + 2e6 / kRate + kLatency + 3e-7, 1e-12);
  parameters.copy_bytes_per_second = 10e9;
  EXPECT_NEAR(time(script.actions, line(2), 1'000'000, parameters).seconds,
              5e-6 + 2e-7 + 1e6 / 10e9 + kLatency + 3e-7 + 1e6 / 10e9, 1e-12);
}

TEST(Simulate, ALargeRingAllReduceIsNearItsBandwidth) {
  for (const int ranks : {2, 4, 8}) {
    constexpr std::int64_t kBytes = std::int64_t{1} << 32;
    const double ideal = 2.0 * (ranks - 1) / ranks * double(kBytes) / kRate;
    // All send at once and then wait for what was sent: every slot adds a latency.
    const double slot = double(2 << 20) / kRate;
    EXPECT_NEAR(time(ring_all_reduce(ranks), ring(ranks), kBytes).seconds, ideal * (1 + kLatency / slot),
                ideal * 1e-3);
    const CollectiveTime found = time(ring_all_reduce(ranks), ring(ranks, kRate, 1e-8), kBytes);
    EXPECT_GT(found.seconds, ideal);
    EXPECT_LT(found.seconds, ideal * 1.002) << ranks;
    EXPECT_GT(found.slices, found.simulated_slices);
    const double busiest = *std::max_element(found.link_busy.begin(), found.link_busy.end());
    EXPECT_GT(busiest, 0.95);
    EXPECT_LE(busiest, 1 + 1e-9);
  }
}

TEST(Simulate, ASmallRingAllReduceIsLatencyBound) {
  for (const int ranks : {2, 4, 8}) {
    const double steps = 2.0 * (ranks - 1);
    const double found = time(ring_all_reduce(ranks), ring(ranks), 8).seconds;
    EXPECT_NEAR(found, steps * kLatency, 1e-9) << ranks;
  }
}

TEST(Simulate, SimulatingAllSlicesAgreesWithSimulatingSome) {
  RunParameters all;
  all.max_slices = 1 << 20;
  for (const auto& [program, topology] :
       {std::pair(ring_all_reduce(4), ring(4)), std::pair(chain_broadcast(6), line(6))}) {
    const CollectiveTime some = time(program, topology, 400 << 20);
    const CollectiveTime whole = time(program, topology, 400 << 20, all);
    EXPECT_EQ(some.simulated_slices, 16);
    EXPECT_EQ(whole.simulated_slices, whole.slices);
    EXPECT_NEAR(some.seconds, whole.seconds, whole.seconds * 1e-3);
  }
}

TEST(Simulate, SlicesPipelineThroughAChain) {
  // 64 slots over five hops take as long as over one hop plus four slots, not five times as long.
  const std::int64_t bytes = 128 << 20;
  const double one = double(bytes) / kRate, slot = double(2 << 20) / kRate;
  RunParameters parameters;
  parameters.slots = 8;
  EXPECT_NEAR(time(chain_broadcast(6), line(6), bytes, parameters).seconds, one + 4 * slot + 5 * kLatency,
              1e-9);
  // With two slots, a slot returns one latency after the sender could have used it.
  parameters.slots = 2;
  EXPECT_NEAR(time(chain_broadcast(6), line(6), bytes, parameters).seconds,
              one + 4 * slot + 5 * kLatency + 62 * kLatency, 1e-9);
}

TEST(Simulate, OneSlotStallsAndTwoDoNot) {
  Script script(Kind::send, 2, 1);
  script.actions.collective.peer = 1;
  script.agent(0);
  script.send(1);
  script.agent(1);
  script.receive(0);
  const std::int64_t bytes = 8 << 20;  // four slots, one after another
  const double slot = double(2 << 20) / kRate;
  RunParameters parameters;
  parameters.slots = 1;
  // Every slot is sent, arrives, and is free one latency later.
  EXPECT_NEAR(time(script.actions, line(2), bytes, parameters).seconds, 4 * slot + 7 * kLatency, 1e-12);
  parameters.slots = 2;
  EXPECT_NEAR(time(script.actions, line(2), bytes, parameters).seconds, 4 * slot + kLatency, 1e-12);
}

TEST(Simulate, ALongTransferNeedsASlotPerChunk) {
  // Both send three chunks before they receive. Small ones fit one transfer; large ones need one
  // each, and two slots are not enough.
  Script script(Kind::all_to_all, 2, 3);
  for (const int rank : {0, 1}) {
    script.agent(rank);
    script.send(1 - rank, 3);
    script.receive(1 - rank, 3);
  }
  EXPECT_NEAR(time(script.actions, line(2), 600).seconds, 300 / kRate + kLatency, 1e-12);
  const auto stuck = simulate(script.actions, line(2), 24 << 20, bare());
  ASSERT_FALSE(stuck.ok());
  EXPECT_EQ(stuck.error().message, "the program deadlocks: gpu 0 tb 0 step 0 waits for a free slot to gpu 1");
  RunParameters parameters;
  parameters.slots = 3;
  EXPECT_GT(time(script.actions, line(2), 24 << 20, parameters).seconds, double(12 << 20) / kRate);
}

// Two channels of one pair share the link; over two links they do not.
TEST(Simulate, TwoFlowsShareALink) {
  Script script(Kind::send, 2, 2);
  script.actions.collective.peer = 1;
  for (const int channel : {0, 1}) {
    script.agent(0);
    script.send(1, 1, channel);
    script.agent(1);
    script.receive(0, 1, channel);
  }
  EXPECT_NEAR(time(script.actions, line(2), 2'000'000).seconds, 2e6 / kRate + kLatency, 1e-12);
  Topology twice = line(2);
  twice.add_cable(0, 1, kRate, kLatency);
  EXPECT_NEAR(time(script.actions, twice, 2'000'000).seconds, 1e6 / kRate + kLatency, 1e-12);
}

TEST(Simulate, HalfDuplexLinksCarryOneDirectionAtATime) {
  Script script(Kind::all_to_all, 2, 1);
  for (const int rank : {0, 1}) {
    script.agent(rank);
    script.send(1 - rank);
    script.receive(1 - rank);
  }
  Topology topology = line(2);
  EXPECT_NEAR(time(script.actions, topology, 2'000'000).seconds, 1e6 / kRate + kLatency, 1e-12);
  topology.links[0].shares_with = 1;
  topology.links[1].shares_with = 0;
  EXPECT_NEAR(time(script.actions, topology, 2'000'000).seconds, 2e6 / kRate + kLatency, 1e-12);
}

TEST(Simulate, DependenciesWithinARankDelay) {
  Script script(Kind::send, 2, 1);
  script.actions.collective.peer = 1;
  const int first = script.agent(0);
  script.with_cells(script.act(), {script.own()}, {script.own(1)}).publishes = true;
  script.agent(0);
  script.send(1);
  script.actions.actions.back().wait_agent = first;
  script.actions.actions.back().wait_step = 0;
  script.agent(1);
  script.receive(0);
  RunParameters parameters;
  parameters.copy_bytes_per_second = 50e9;
  const CollectiveTime found = time(script.actions, line(2), 1'000'000, parameters, Timeline::yes);
  EXPECT_NEAR(found.seconds, 3 * 1e6 / 50e9 + kLatency, 1e-12);
  ASSERT_EQ(found.timeline.size(), 3u);
  EXPECT_EQ(found.timeline[1].agent, 1);
  EXPECT_NEAR(found.timeline[1].begin, 1e6 / 50e9, 1e-12);
  EXPECT_NEAR(found.timeline[1].end, 2 * 1e6 / 50e9, 1e-12);
}

// put, signal; wait, copy.
TEST(Simulate, ChargesOneSidedWritesAndSignals) {
  Script script(Kind::send, 2, 1);
  script.actions.collective.peer = 1;
  const int signal = script.counter(1);
  script.agent(0);
  script.with_cells(script.act(), {script.own()}, {{1, Buffer::output, false, 0}});
  script.act().raise = signal;
  script.agent(1);
  script.act().consume = signal;
  EXPECT_NEAR(time(script.actions, line(2), 1'000'000).seconds, 1e6 / kRate + kLatency, 1e-12);
  // Reads instead: the request goes out, the data comes back.
  Script reads(Kind::send, 2, 1);
  reads.agent(1);
  reads.with_cells(reads.act(), {{0, Buffer::input, false, 0}}, {reads.own()});
  EXPECT_NEAR(time(reads.actions, line(2), 1'000'000).seconds, 1e6 / kRate + 2 * kLatency, 1e-12);
}

TEST(Simulate, WaitsForPacketsAndChargesThemTwice) {
  Script script(Kind::send, 2, 2);
  script.agent(1);
  script.with_cells(script.act(2), {{1, Buffer::scratch, true, 0}}, {script.own()});
  script.agent(0);
  script.with_cells(script.act(2), {script.own()}, {{1, Buffer::scratch, true, 0}});
  EXPECT_NEAR(time(script.actions, line(2), 1'000'000).seconds, 2e6 / kRate + kLatency, 1e-12);
}

TEST(Simulate, BarriersHoldAllUntilTheLastArrives) {
  Script script(Kind::custom, 1, 1);
  script.agent(0);
  script.with_cells(script.act(), {script.own()}, {script.own(1)});
  script.act().barrier = 0;
  script.agent(0);
  script.act().barrier = 0;
  script.with_cells(script.act(), {script.own()}, {script.own(1)});
  script.actions.barriers.push_back({0, {0, 1}});
  RunParameters parameters;
  parameters.copy_bytes_per_second = 10e9;
  EXPECT_NEAR(time(script.actions, line(1), 1'000'000, parameters).seconds, 2e-4, 1e-12);
}

TEST(Simulate, RejectsTooFewDevicesAndMissingRoutes) {
  EXPECT_FALSE(simulate(ring_all_reduce(4), ring(3), 1024, bare()).ok());
  Topology apart;
  for (const char* device : {"a", "b"}) apart.add_node(NodeKind::device, device);
  const auto found = simulate(ring_all_reduce(2), apart, 1024, bare());
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("has no path between ranks"), std::string::npos);
  EXPECT_FALSE(simulate(ring_all_reduce(2), ring(2), -1, bare()).ok());
}

TEST(Simulate, IsDeterministic) {
  const Topology topology = ring(8, 33.3e9, 0.7e-6);
  RunParameters parameters = run_parameters(collective::Protocol::simple);
  const CollectiveTime once = time(ring_all_reduce(8), topology, 123'456'789, parameters);
  const CollectiveTime again = time(ring_all_reduce(8), topology, 123'456'789, parameters);
  EXPECT_EQ(once.seconds, again.seconds);
  EXPECT_EQ(once.events, again.events);
  EXPECT_EQ(once.link_busy, again.link_busy);
}

TEST(CostTable, HasTheColumnsOfNcclTests) {
  const auto sizes = message_sizes(1 << 10, 1 << 14);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14}));
  const auto rows = cost_table(ring_all_reduce(4), ring(4), sizes, bare());
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const CostRow& row = (*rows)[i];
    EXPECT_EQ(row.bytes, sizes[i]);
    EXPECT_DOUBLE_EQ(row.algorithm_bandwidth, double(row.bytes) / row.seconds);
    EXPECT_DOUBLE_EQ(row.bus_bandwidth, row.algorithm_bandwidth * 1.5);
    if (i > 0) {
      EXPECT_GT(row.seconds, (*rows)[i - 1].seconds);
    }
  }
}

constexpr double kForever = std::numeric_limits<double>::infinity();

TEST(Network, SharesMaxMinFairly) {
  // The picture in network.h: b limits the long flow, and the short one gets the rest of a.
  Topology topology;
  for (const char* device : {"0", "1", "2"}) topology.add_node(NodeKind::device, device);
  const std::int32_t a = topology.add_link(0, 1, 100, 0), b = topology.add_link(1, 2, 40, 0);
  Network network(topology);
  const std::int32_t on_a = network.add_route(std::vector{a}), both = network.add_route(std::vector{a, b});
  const std::int32_t first = network.start(0, on_a, 600, kForever);
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.pace(first), 100);
  const std::int32_t second = network.start(2, both, 400, kForever);
  network.settle(2);
  EXPECT_DOUBLE_EQ(network.pace(first), 60);
  EXPECT_DOUBLE_EQ(network.pace(second), 40);
  // 200 sent in the first two seconds; 400 more at 60 per second.
  ASSERT_TRUE(network.next());
  EXPECT_EQ(network.next()->second, first);
  EXPECT_DOUBLE_EQ(network.next()->first, 2 + 400.0 / 60);
  network.finish(first);
  network.settle(2 + 400.0 / 60);
  EXPECT_DOUBLE_EQ(network.next()->first, 12);
  network.finish(second);
  network.settle(12);
  EXPECT_FALSE(network.next());
  EXPECT_DOUBLE_EQ(network.bytes_carried(a), 1000);
  EXPECT_DOUBLE_EQ(network.bytes_carried(b), 400);
}

TEST(Network, SlowFlowsLeaveBandwidthToOthers) {
  Topology topology;
  for (const char* device : {"0", "1"}) topology.add_node(NodeKind::device, device);
  topology.add_link(0, 1, 90, 0);
  Network network(topology);
  const std::int32_t route = network.add_route(std::vector{0});
  const std::int32_t slow = network.start(0, route, 1e3, 10);
  const std::int32_t one = network.start(0, route, 1e3, kForever), other = network.start(0, route, 1e3, 60);
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.pace(slow), 10);
  EXPECT_DOUBLE_EQ(network.pace(one), 40);
  EXPECT_DOUBLE_EQ(network.pace(other), 40);
}

TEST(Network, ASwitchMayLimitItsLinks) {
  Topology topology;
  for (const char* device : {"0", "1", "2", "3"}) topology.add_node(NodeKind::device, device);
  const std::int32_t hub = topology.add_node(NodeKind::switch_, "hub");
  topology.nodes[static_cast<std::size_t>(hub)].bytes_per_second = 120;
  for (std::int32_t d = 0; d < 4; ++d) topology.add_cable(d, hub, 100, 0);
  Network network(topology);
  const std::int32_t one = network.add_route(std::vector{0, 3}), other = network.add_route(std::vector{4, 7});
  const std::int32_t a = network.start(0, one, 1e3, kForever), b = network.start(0, other, 1e3, kForever);
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.pace(a), 60);
  EXPECT_DOUBLE_EQ(network.pace(b), 60);
}

// For any flows: no link exceeds its capacity, and every flow is at its maximum or on a saturated
// link where no flow is faster.
TEST(Network, EveryFlowIsLimitedByASaturatedLinkOrItself) {
  constexpr std::int32_t kLinks = 12;
  Topology topology;
  for (int d = 0; d <= kLinks; ++d) topology.add_node(NodeKind::device, "gpu");
  std::uint64_t seed = 1;
  const auto random = [&](std::uint64_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
  };
  for (std::int32_t l = 0; l < kLinks; ++l) topology.add_link(l, l + 1, 50 + double(random(100)), 0);
  Network network(topology);
  struct Known {
    std::int32_t flow, first, last;
    double fastest;
  };
  std::vector<Known> known;
  for (int round = 0; round < 300; ++round) {
    if (known.size() > 20 || (!known.empty() && random(3) == 0)) {
      const std::size_t gone = random(known.size());
      network.finish(known[gone].flow);
      known.erase(known.begin() + static_cast<std::ptrdiff_t>(gone));
    } else {
      const auto first = static_cast<std::int32_t>(random(kLinks));
      const auto last = static_cast<std::int32_t>(first + random(static_cast<std::uint64_t>(kLinks - first)));
      std::vector<std::int32_t> links;
      for (std::int32_t l = first; l <= last; ++l) links.push_back(l);
      const double fastest = random(2) == 0 ? 5 + double(random(60)) : 1e6;
      known.push_back({network.start(0, network.add_route(links), 1e9, fastest), first, last, fastest});
    }
    network.settle(0);
    std::vector<double> used(kLinks, 0), most(kLinks, 0);
    for (const Known& flow : known)
      for (std::int32_t l = flow.first; l <= flow.last; ++l) {
        used[static_cast<std::size_t>(l)] += network.pace(flow.flow);
        most[static_cast<std::size_t>(l)] =
            std::max(most[static_cast<std::size_t>(l)], network.pace(flow.flow));
      }
    for (std::size_t l = 0; l < kLinks; ++l)
      ASSERT_LE(used[l], topology.links[l].bytes_per_second * (1 + 1e-9));
    for (const Known& flow : known) {
      bool held = network.pace(flow.flow) >= flow.fastest * (1 - 1e-9);
      for (auto l = static_cast<std::size_t>(flow.first); l <= static_cast<std::size_t>(flow.last); ++l)
        held = held || (used[l] >= topology.links[l].bytes_per_second * (1 - 1e-9) &&
                        network.pace(flow.flow) >= most[l] * (1 - 1e-9));
      ASSERT_TRUE(held) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace weft::sim
