// weft/formats/graph_json.h -- shared parts of JSON graph readers: ids, edges between them, and
// nonnegative numbers.
#pragma once
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"

namespace weft::formats {

constexpr std::size_t kMostGraphNodes = 20'000, kMostGraphEdges = 200'000;

using GraphIds = std::unordered_map<std::int32_t, std::int32_t>;  // node id to node index

// A required number of at least `least`.
inline Result<double> graph_number(const JsonNode& node, const char* key, double least = 0) {
  WEFT_TRY(found, node.at(key));
  WEFT_TRY(number, node.number(key, 0));
  // The limit keeps sums of many numbers finite.
  if (number < least || number > 1e200)
    return found.error(fmt::format("expected a number of at least {}, found {}", least, number));
  return number;
}

// true, false, 0 or 1.
inline Result<bool> graph_flag(const JsonNode& node, const char* key) {
  WEFT_TRY(found, node.at(key));
  if (const Result<bool> truth = node.truth(key, false); truth.ok()) return truth;
  WEFT_TRY(number, found.whole(0, 1));
  return number == 1;
}

inline Result<std::int32_t> graph_id(const JsonNode& node, const char* key) {
  return node.whole(key, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
}

// The index of the node that an edge names.
inline Result<std::int32_t> graph_end(const JsonNode& edge, const char* key, const GraphIds& ids) {
  WEFT_TRY(id, graph_id(edge, key));
  const auto place = ids.find(id);
  if (place == ids.end()) {
    WEFT_TRY(found, edge.at(key));
    return found.error(fmt::format("expected the id of a node, found {}", id));
  }
  return place->second;
}

// The node's id, which must be new. Its index is the number of nodes before it.
inline Result<std::int32_t> new_graph_id(const JsonNode& node, GraphIds& ids) {
  WEFT_TRY(id, graph_id(node, "id"));
  if (!ids.emplace(id, static_cast<std::int32_t>(ids.size())).second)
    return node.error(fmt::format("expected a unique id, found {} twice", id));
  return id;
}

struct GraphEnds {
  std::int32_t from = 0, to = 0;
};
inline Result<GraphEnds> graph_ends(const JsonNode& edge, const GraphIds& ids) {
  WEFT_TRY(from, graph_end(edge, "sourceId", ids));
  WEFT_TRY(to, graph_end(edge, "destId", ids));
  return GraphEnds{from, to};
}

inline Status check_graph_sizes(const JsonNode& top, std::size_t nodes, std::size_t edges) {
  if (nodes == 0 || nodes > kMostGraphNodes)
    return top.error(fmt::format("expected 1 to {} nodes, found {}", kMostGraphNodes, nodes));
  if (edges > kMostGraphEdges)
    return top.error(fmt::format("expected at most {} edges, found {}", kMostGraphEdges, edges));
  return {};
}

struct GraphLists {
  std::vector<JsonNode> nodes, edges;
};
inline Result<GraphLists> graph_lists(const JsonNode& top) {
  WEFT_TRY(nodes, top.list("nodes"));
  WEFT_TRY(edges, top.list("edges"));
  WEFT_TRY_STATUS(check_graph_sizes(top, nodes.size(), edges.size()));
  return GraphLists{std::move(nodes), std::move(edges)};
}

}  // namespace weft::formats
