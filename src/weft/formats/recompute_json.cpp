#include "weft/formats/recompute_json.h"

#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "weft/formats/json_node.h"

namespace weft::formats {
namespace {

constexpr std::uint64_t kMostRecomputeBytes = std::uint64_t{1} << 60;

Result<std::int64_t> recompute_size(const JsonNode& node, const char* key) {
  WEFT_TRY(there, node.at(key));
  WEFT_TRY(size, node.size(key, 0));
  if (size > kMostRecomputeBytes) return there.error(fmt::format("expected at most 2^60, found {}", size));
  return static_cast<std::int64_t>(size);
}

Result<double> recompute_time(const JsonNode& node, const char* key) {
  WEFT_TRY(there, node.at(key));
  WEFT_TRY(time, node.number(key, 0));
  if (time < 0) return there.error(fmt::format("expected a time of at least 0, found {}", time));
  return time;
}

// The index is the name if none is given.
Result<std::string> recompute_name(const JsonNode& node, std::size_t place) {
  if (!node.has("name")) return fmt::format("{}", place);
  WEFT_TRY(name, node.text("name"));
  return std::string(name);
}

Result<memory::RecomputeGraph> recompute_graph(const JsonNode& top, std::size_t place) {
  memory::RecomputeGraph graph;
  WEFT_TRY(name, recompute_name(top, place));
  graph.name = std::move(name);
  WEFT_TRY(input_size, recompute_size(top, "input_size"));
  graph.input_size = input_size;
  WEFT_TRY(nodes, top.list("nodes"));
  if (nodes.size() > memory::kMostRecomputeNodes)
    return top.error(
        fmt::format("expected at most {} nodes, found {}", memory::kMostRecomputeNodes, nodes.size()));
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    memory::RecomputeNode node;
    WEFT_TRY(own_name, recompute_name(nodes[v], v));
    node.name = std::move(own_name);
    WEFT_TRY(forward, recompute_time(nodes[v], "f"));
    node.forward = forward;
    WEFT_TRY(backward, recompute_time(nodes[v], "b"));
    node.backward = backward;
    WEFT_TRY(size, recompute_size(nodes[v], "a"));
    node.size = size;
    WEFT_TRY(inputs, nodes[v].wholes("inputs", -1, static_cast<std::int32_t>(v) - 1));
    node.inputs = std::move(inputs);
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

}  // namespace

Result<std::vector<memory::RecomputeGraph>> read_recompute_graphs(std::string_view text) {
  WEFT_TRY(json, parse_json(text));
  const JsonNode top(json);
  std::vector<memory::RecomputeGraph> graphs;
  if (json.is_object()) {
    WEFT_TRY(graph, recompute_graph(top, 0));
    graphs.push_back(std::move(graph));
    return graphs;
  }
  WEFT_TRY(items, top.items());
  for (std::size_t g = 0; g < items.size(); ++g) {
    WEFT_TRY(graph, recompute_graph(items[g], g));
    graphs.push_back(std::move(graph));
  }
  return graphs;
}

}  // namespace weft::formats
