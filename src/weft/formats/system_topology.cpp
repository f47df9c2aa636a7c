#include "weft/formats/system_topology.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace weft::formats {
namespace {

using cluster::NodeKind;

NodeKind kind_of(NcclVertex::Kind kind) {
  switch (kind) {
    case NcclVertex::Kind::gpu: return NodeKind::device;
    case NcclVertex::Kind::cpu: return NodeKind::host;
    case NcclVertex::Kind::nic: return NodeKind::nic;
    default: return NodeKind::switch_;
  }
}

}  // namespace

Result<cluster::Topology> topology_of(const NcclSystem& system) {
  if (system.gpus.empty())
    return user_error("the system has no gpus",
                      "set NCCL_TOPO_DUMP_FILE to write the complete detected topology");
  cluster::Topology topology;
  topology.name = "system";

  std::vector<std::int32_t> order(system.gpus.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](std::int32_t gpu) {
    const std::int32_t said = system.gpus[static_cast<std::size_t>(gpu)].rank;
    return said >= 0 ? said : std::numeric_limits<std::int32_t>::max();
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return rank(a) < rank(b); });

  std::map<NcclVertex, std::int32_t> nodes;
  for (const std::int32_t gpu : order)
    nodes[{NcclVertex::Kind::gpu, gpu}] =
        topology.add_node(NodeKind::device, fmt::format("gpu {}", nodes.size()));
  const auto node_of = [&](NcclVertex vertex) {
    const bool network = vertex.kind == NcclVertex::Kind::net;
    if (network) vertex.index = 0;
    const auto [at, fresh] = nodes.try_emplace(vertex, 0);
    if (fresh)
      at->second = topology.add_node(
          kind_of(vertex.kind), network ? "network" : fmt::format("{} {}", name(vertex.kind), vertex.index));
    return at->second;
  };
  constexpr double kGiga = 1e9;
  for (const NcclLink& link : links(system)) {
    const std::int32_t from = node_of(link.from), to = node_of(link.to);
    // A link without a stated width or speed is omitted.
    if (link.bandwidth > 0) topology.add_link(from, to, link.bandwidth * kGiga, link.latency);
  }
  WEFT_TRY_STATUS(cluster::check(topology));
  return topology;
}

}  // namespace weft::formats
