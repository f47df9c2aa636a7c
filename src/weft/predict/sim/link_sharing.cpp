#include "weft/predict/sim/link_sharing.h"

#include <vector>

namespace weft::sim {
namespace {

// A port needs no topology: it is a link with one second of work per second.
cluster::Topology ports(std::size_t count) {
  cluster::Topology topology;
  topology.devices = 2;
  topology.nodes.resize(2);
  topology.links.assign(count, {.from = 0, .to = 1, .bytes_per_second = 1});
  return topology;
}

}  // namespace

LinkSharing::LinkSharing(std::size_t ranks, std::size_t wires)
    : wires_(wires), network_(ports(ranks * wires)) {}

std::int32_t LinkSharing::add_route(std::size_t wire, std::span<const std::uint32_t> members) {
  std::vector<std::int32_t> links;
  for (const std::uint32_t rank : members) links.push_back(static_cast<std::int32_t>(rank * wires_ + wire));
  return network_.add_route(links);
}

std::int32_t LinkSharing::start(double now, std::int32_t route, double seconds) {
  const std::int32_t transfer = network_.start(now, route, seconds, /*fastest=*/1);
  network_.settle(now);
  return transfer;
}

void LinkSharing::finish(double now, std::int32_t transfer) {
  network_.finish(transfer);
  network_.settle(now);
}

}  // namespace weft::sim
