#include "weft/app/explain/operator_list.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace weft::explain {

std::string shown_name(const plan::NodeView& node) {
  if (node.op().name() == "exchange") return std::string(node.word(0));
  return std::string(node.op().name());
}

std::string operator_list(const plan::Graph& graph, std::span<const plan::NodeId> nodes) {
  std::vector<std::pair<std::string, int>> seen;
  for (const plan::NodeId id : nodes) {
    std::string name = shown_name(graph.view(id));
    const auto at = std::ranges::find(seen, name, &std::pair<std::string, int>::first);
    if (at == seen.end())
      seen.emplace_back(std::move(name), 1);
    else
      ++at->second;
  }
  std::string text;
  for (const auto& [name, count] : seen) {
    if (!text.empty()) text += ", ";
    text += name;
    if (count > 1) text += fmt::format(" ×{}", count);
  }
  return text;
}

}  // namespace weft::explain
