#include "weft/formats/placement_json.h"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/formats/graph_json.h"

namespace weft::formats {
namespace {

constexpr std::int32_t kMostPlacementDevices = 10'000;

Result<partition::PlacementNode> placement_node(const JsonNode& node, GraphIds& ids) {
  partition::PlacementNode read;
  WEFT_TRY(id, new_graph_id(node, ids));
  read.id = id;
  WEFT_TRY(accelerated, graph_flag(node, "supportedOnFpga"));
  read.accelerated = accelerated;
  WEFT_TRY(backward, graph_flag(node, "isBackwardNode"));
  read.backward = backward;
  WEFT_TRY(on_accelerator, graph_number(node, "fpgaLatency"));
  read.on_accelerator = on_accelerator;
  WEFT_TRY(on_cpu, graph_number(node, "cpuLatency"));
  read.on_cpu = on_cpu;
  if (!node.has("size")) return read;
  WEFT_TRY(bytes, graph_number(node, "size"));
  read.bytes = bytes;
  return read;
}

Status read_placement_edges(const std::vector<JsonNode>& edges, const GraphIds& ids,
                            partition::Placement& placement) {
  std::vector<bool> sends(placement.nodes.size());
  for (const JsonNode& edge : edges) {
    WEFT_TRY(ends, graph_ends(edge, ids));
    const auto [from, to] = ends;
    WEFT_TRY(cost, graph_number(edge, "cost"));
    partition::PlacementNode& source = placement.nodes[static_cast<std::size_t>(from)];
    if (from == to) return edge.error(fmt::format("expected two nodes, found {} twice", source.id));
    if (source.backward && !placement.nodes[static_cast<std::size_t>(to)].backward)
      return edge.error(
          fmt::format("expected no edge from a backward to a forward node, found one from {}", source.id));
    if (sends[static_cast<std::size_t>(from)] && std::abs(source.send - cost) > 1e-6)
      return edge.error(fmt::format("expected the cost of the other edges of node {}, {}, found {}",
                                    source.id, source.send, cost));
    source.send = cost;
    sends[static_cast<std::size_t>(from)] = true;
    placement.edges.emplace_back(from, to);
  }
  return {};
}

}  // namespace

Result<partition::Placement> read_placement(const JsonNode& top) {
  partition::Placement placement;
  WEFT_TRY(memory, graph_number(top, "maxSizePerFPGA"));
  placement.memory = memory;
  WEFT_TRY(accelerators, top.whole("maxFPGAs", 0, kMostPlacementDevices));
  placement.accelerators = accelerators;
  WEFT_TRY(cpus, top.whole("maxCPUs", 0, kMostPlacementDevices));
  placement.cpus = cpus;
  if (accelerators + cpus == 0) return top.error("expected an accelerator or a CPU, found neither");
  WEFT_TRY(lists, graph_lists(top));
  GraphIds ids, classes;
  for (const JsonNode& node : lists.nodes) {
    const auto place = static_cast<std::int32_t>(placement.nodes.size());
    WEFT_TRY(read, placement_node(node, ids));
    read.class_of = place;
    if (node.has("colorClass")) {
      WEFT_TRY(color, graph_id(node, "colorClass"));
      read.class_of = classes.emplace(color, place).first->second;
    }
    placement.nodes.push_back(read);
  }
  WEFT_TRY_STATUS(read_placement_edges(lists.edges, ids, placement));
  return placement;
}

}  // namespace weft::formats
