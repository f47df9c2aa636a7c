#include "weft/formats/stage_costs_json.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/graph_json.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

constexpr std::int32_t kMostHybridDevices = 10'000, kMostMicroBatches = 1 << 20;
constexpr std::size_t kMostHybridNodes = 2'000, kMostWays = 64;

// A node's edges, as ids of the other end, in edge order.
struct NodeEdges {
  std::vector<std::int32_t> from, to;
};

// One number per edge, looked up by the id of its other end.
Result<std::vector<double>> read_syncs(const JsonNode& way, const char* key,
                                       const std::vector<std::int32_t>& ends) {
  WEFT_TRY(syncs, way.at(key));
  WEFT_TRY_STATUS(syncs.expect_object());
  std::vector<double> bytes;
  for (const std::int32_t end : ends) {
    WEFT_TRY(sync, graph_number(syncs, std::to_string(end).c_str()));
    bytes.push_back(sync);
  }
  return bytes;
}

Result<partition::Way> read_way(const JsonNode& way, const NodeEdges& edges) {
  partition::Way read;
  WEFT_TRY(name, way.text("id"));
  read.name = name;
  WEFT_TRY(seconds, graph_number(way, "timePerSample"));
  read.seconds = seconds;
  WEFT_TRY(parameters, graph_number(way, "parameterSize"));
  read.parameters = parameters;
  WEFT_TRY(held, graph_number(way, "memoryUsageA"));
  read.held = held;
  WEFT_TRY(kept, graph_number(way, "memoryUsageB"));
  read.kept = kept;
  WEFT_TRY(from, read_syncs(way, "syncTimeFw", edges.from));
  read.from = std::move(from);
  WEFT_TRY(to, read_syncs(way, "syncTimeBw", edges.to));
  read.to = std::move(to);
  return read;
}

Status read_degrees(const JsonNode& node, const Json& value, const NodeEdges& edges,
                    partition::HybridNode& read) {
  WEFT_TRY(degrees, node.at("TMPCs"));
  WEFT_TRY_STATUS(degrees.expect_object());
  for (const auto& [key, ways] : value.at("TMPCs").items()) {
    partition::HybridNode::Degree degree;
    const auto devices = read_number<std::int32_t>(key, 1, kMostHybridDevices);
    if (!devices || std::to_string(*devices) != key)
      return degrees.error(fmt::format("expected a number of devices, found '{}'", shown(key)));
    degree.devices = *devices;
    WEFT_TRY(list, degrees.list(key.c_str()));
    if (list.size() > kMostWays)
      return degrees.error(
          fmt::format("expected at most {} ways on {} devices, found {}", kMostWays, key, list.size()));
    for (const JsonNode& way : list) {
      WEFT_TRY(one, read_way(way, edges));
      degree.ways.push_back(std::move(one));
    }
    read.degrees.push_back(std::move(degree));
  }
  std::ranges::sort(read.degrees, {}, &partition::HybridNode::Degree::devices);
  return {};
}

}  // namespace

Result<partition::Hybrid> read_stage_costs(const JsonNode& top, const Json& value) {
  partition::Hybrid hybrid;
  WEFT_TRY(devices, top.whole("maxDevices", 1, kMostHybridDevices));
  hybrid.devices = devices;
  WEFT_TRY(memory, graph_number(top, "maxMemoryPerDevice", 1));
  hybrid.memory = memory;
  WEFT_TRY(bandwidth, graph_number(top, "bandwidth", 1e-9));
  hybrid.bandwidth = bandwidth;
  WEFT_TRY(micro_batches, top.whole("mbsInBatch", 1, kMostMicroBatches));
  hybrid.micro_batches = micro_batches;
  WEFT_TRY(lists, graph_lists(top));
  const auto& [nodes, edges] = lists;
  if (nodes.size() > kMostHybridNodes)
    return top.error(fmt::format("expected at most {} nodes, found {}", kMostHybridNodes, nodes.size()));
  GraphIds ids;
  for (const JsonNode& node : nodes) {
    WEFT_TRY(id, new_graph_id(node, ids));
    hybrid.nodes.push_back({id, {}});
  }
  std::vector<NodeEdges> ends(nodes.size());
  for (const JsonNode& edge : edges) {
    WEFT_TRY(both, graph_ends(edge, ids));
    const auto [from, to] = both;
    WEFT_TRY(bytes, graph_number(edge, "communicationCost"));
    hybrid.edges.push_back({from, to, bytes});
    ends[static_cast<std::size_t>(from)].to.push_back(
        static_cast<std::int32_t>(hybrid.nodes[static_cast<std::size_t>(to)].id));
    ends[static_cast<std::size_t>(to)].from.push_back(
        static_cast<std::int32_t>(hybrid.nodes[static_cast<std::size_t>(from)].id));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    WEFT_TRY_STATUS(read_degrees(nodes[i], value.at("nodes")[i], ends[i], hybrid.nodes[i]));
  return hybrid;
}

}  // namespace weft::formats
