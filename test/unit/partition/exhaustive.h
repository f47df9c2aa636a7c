// exhaustive.h -- every split of a small graph, without ideals: each node gets any stage that its
// edges allow.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace weft::partition {

using Assignment = std::vector<std::vector<std::int32_t>>;  // the nodes of each stage, none empty

// REQUIRES: edges go from lower to higher nodes.
inline void each_split(std::int32_t nodes, const std::vector<std::pair<std::int32_t, std::int32_t>>& edges,
                       std::int32_t most_stages, const std::function<void(const Assignment&)>& visit) {
  std::vector<std::int32_t> stage(static_cast<std::size_t>(nodes));
  const std::function<void(std::int32_t)> descend = [&](std::int32_t node) {
    if (node == nodes) {
      Assignment split(static_cast<std::size_t>(most_stages));
      for (std::int32_t i = 0; i < nodes; ++i)
        split[static_cast<std::size_t>(stage[static_cast<std::size_t>(i)])].push_back(i);
      while (!split.empty() && split.back().empty()) split.pop_back();
      for (const auto& part : split)
        if (part.empty()) return;
      visit(split);
      return;
    }
    for (std::int32_t own = 0; own < most_stages; ++own) {
      bool allowed = true;
      for (const auto& [from, to] : edges)
        if (to == node && stage[static_cast<std::size_t>(from)] > own) allowed = false;
      stage[static_cast<std::size_t>(node)] = own;
      if (allowed) descend(node + 1);
    }
  };
  descend(0);
}

}  // namespace weft::partition
