#include "weft/predict/sim/collective/neighbours.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/plan/cluster/routes.h"
#include "weft/predict/sim/network.h"

namespace weft::sim {
namespace {

struct Message {
  std::int32_t to, from;  // by target: Routes is fastest for consecutive routes to one target

  friend auto operator<=>(const Message&, const Message&) = default;
};

std::vector<Message> messages_of(const Neighbours& neighbours, std::int32_t devices) {
  std::vector<Message> messages;
  const std::int32_t span = neighbours.ranks * neighbours.stride;
  for (std::int32_t device = 0; device < devices; ++device) {
    const std::int32_t place = device % span / neighbours.stride;
    const bool last = place + 1 == neighbours.ranks;
    if (last && !neighbours.closed) continue;
    const std::int32_t next =
        last ? device - (neighbours.ranks - 1) * neighbours.stride : device + neighbours.stride;
    messages.push_back({next, device});
    if (neighbours.both_ways) messages.push_back({device, next});
  }
  std::ranges::sort(messages);
  return messages;
}

}  // namespace

Result<NeighbourTime> simulate(const Neighbours& neighbours, const cluster::Topology& topology, double bytes,
                               std::int32_t threadblocks, const RunParameters& parameters) {
  WEFT_CHECK(neighbours.ranks >= 2 && neighbours.stride >= 1 && threadblocks >= 1, "ranks with neighbours");
  WEFT_CHECK(topology.devices % (std::int64_t{neighbours.ranks} * neighbours.stride) == 0,
             "groups of the axis fill the devices");
  const std::vector<Message> messages = messages_of(neighbours, topology.devices);
  // A rank with two neighbours sends half of its bytes to each.
  const bool two_sides = neighbours.both_ways && neighbours.ranks > 2;
  const double each = bytes / parameters.efficiency / (two_sides ? 2 : 1);
  const double fastest =
      threadblocks * parameters.copy_bytes_per_second / parameters.efficiency / (two_sides ? 2 : 1);

  Network network(topology);
  cluster::Routes routes(topology);
  double latency = 0;
  std::vector<double> latency_of;  // by flow
  for (const Message& message : messages) {
    const auto links = routes.route(message.from, message.to);
    if (!links)
      return user_error(
          fmt::format("{} has no path between ranks {} and {}", topology.name, message.from, message.to),
          "neighbours along a mesh axis must be connected by links");
    const std::int32_t flow = network.start(0, network.add_route(*links), each, fastest);
    latency_of.resize(std::max(latency_of.size(), static_cast<std::size_t>(flow) + 1));
    latency_of[static_cast<std::size_t>(flow)] = cluster::latency(topology, *links);
    latency = std::max(latency, latency_of[static_cast<std::size_t>(flow)]);
  }
  network.settle(0);
  double arrived = 0;
  while (const auto next = network.next()) {
    const auto [now, flow] = *next;
    arrived = std::max(arrived, now + latency_of[static_cast<std::size_t>(flow)]);
    network.finish(flow);
    network.settle(now);
  }
  const double besides = parameters.launch_seconds + parameters.step_seconds + parameters.message_seconds;
  return NeighbourTime{besides + latency, std::max(arrived - latency, 0.0)};
}

}  // namespace weft::sim
