#include "weft/parallel/partition/placement_blocks.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace weft::partition {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;

class Groups {
 public:
  explicit Groups(std::size_t count) : above_(count) { std::iota(above_.begin(), above_.end(), 0); }

  std::int32_t of(std::int32_t member) {
    while (above_[slot(member)] != member) {
      above_[slot(member)] = above_[slot(above_[slot(member)])];
      member = above_[slot(member)];
    }
    return member;
  }
  void merge(std::int32_t from, std::int32_t into) { above_[slot(of(from))] = of(into); }

 private:
  std::vector<std::int32_t> above_;
};

// Order constraints between classes. They come from forward edges. A class with only backward nodes
// is ordered by its backward edges, reversed.
Lists class_edges(const Placement& placement) {
  std::vector<bool> has_forward(placement.nodes.size());
  for (const PlacementNode& node : placement.nodes)
    if (!node.backward) has_forward[slot(node.class_of)] = true;
  Lists after(placement.nodes.size());
  for (const auto& [from, to] : placement.edges) {
    const PlacementNode& u = placement.nodes[slot(from)];
    const PlacementNode& v = placement.nodes[slot(to)];
    if (u.class_of == v.class_of) continue;
    if (!u.backward && !v.backward)
      after[slot(u.class_of)].push_back(v.class_of);
    else if (u.backward && v.backward && !(has_forward[slot(u.class_of)] && has_forward[slot(v.class_of)]))
      after[slot(v.class_of)].push_back(u.class_of);
  }
  return after;
}

// Merges cycles: a first traversal finds the post-order, a second one against the edges finds the
// components.
void merge_cycles(const Lists& after, Groups& groups) {
  const std::size_t count = after.size();
  Lists before(count);
  for (std::size_t from = 0; from < count; ++from)
    for (const std::int32_t to : after[from]) before[slot(to)].push_back(static_cast<std::int32_t>(from));
  std::vector<std::int32_t> left;
  std::vector<bool> seen(count);
  std::vector<std::pair<std::int32_t, std::size_t>> path;
  for (std::size_t start = 0; start < count; ++start) {
    if (seen[start]) continue;
    seen[start] = true;
    path.emplace_back(static_cast<std::int32_t>(start), 0);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next == after[slot(node)].size()) {
        left.push_back(node);
        path.pop_back();
        continue;
      }
      const std::int32_t to = after[slot(node)][next++];
      if (seen[slot(to)]) continue;
      seen[slot(to)] = true;
      path.emplace_back(to, 0);
    }
  }
  seen.assign(count, false);
  for (auto root = left.rbegin(); root != left.rend(); ++root) {
    if (seen[slot(*root)]) continue;
    std::vector<std::int32_t> open = {*root};
    seen[slot(*root)] = true;
    while (!open.empty()) {
      const std::int32_t node = open.back();
      open.pop_back();
      groups.merge(node, *root);
      for (const std::int32_t from : before[slot(node)]) {
        if (seen[slot(from)]) continue;
        seen[slot(from)] = true;
        open.push_back(from);
      }
    }
  }
}

// Merges groups without cost and with a single neighbour into that neighbour: on their own they
// could only add a transfer. This reduces the number of ideals.
void merge_idle_leaves(const Placement& placement, const Lists& after, Groups& groups) {
  std::vector<bool> idle(placement.nodes.size(), true);
  std::vector<std::set<std::int32_t>> neighbours(placement.nodes.size());
  double bytes = 0;
  for (const PlacementNode& node : placement.nodes) bytes += node.bytes;
  const bool roomy = bytes <= placement.memory;  // then the placement of bytes does not matter
  for (const PlacementNode& node : placement.nodes)
    if (node.on_accelerator > 0 || node.on_cpu > 0 || (node.bytes > 0 && !roomy) || !node.accelerated)
      idle[slot(groups.of(node.class_of))] = false;
  const auto join = [&](std::int32_t a, std::int32_t b) {
    if (groups.of(a) == groups.of(b)) return;
    neighbours[slot(groups.of(a))].insert(groups.of(b));
    neighbours[slot(groups.of(b))].insert(groups.of(a));
  };
  for (const auto& [from, to] : placement.edges)
    join(placement.nodes[slot(from)].class_of, placement.nodes[slot(to)].class_of);
  for (std::size_t from = 0; from < after.size(); ++from)
    for (const std::int32_t to : after[from]) join(static_cast<std::int32_t>(from), to);
  std::vector<std::int32_t> open(placement.nodes.size());
  std::iota(open.begin(), open.end(), 0);
  while (!open.empty()) {
    const std::int32_t group = open.back();
    open.pop_back();
    if (groups.of(group) != group || !idle[slot(group)] || neighbours[slot(group)].size() != 1) continue;
    const std::int32_t only = *neighbours[slot(group)].begin();
    groups.merge(group, only);
    neighbours[slot(only)].erase(group);
    open.push_back(only);
  }
}

}  // namespace

Blocks blocks_of(const Placement& placement) {
  const Lists after = class_edges(placement);
  Groups groups(placement.nodes.size());
  merge_cycles(after, groups);
  merge_idle_leaves(placement, after, groups);
  Blocks result;
  std::vector<std::int32_t> number(placement.nodes.size(), -1);
  const auto block_of = [&](std::int32_t class_of) { return number[slot(groups.of(class_of))]; };
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    const PlacementNode& node = placement.nodes[i];
    std::int32_t& block = number[slot(groups.of(node.class_of))];
    if (block < 0) {
      block = static_cast<std::int32_t>(result.blocks.size());
      result.blocks.emplace_back();
    }
    Blocks::Block& own = result.blocks[slot(block)];
    own.on_accelerator += node.on_accelerator;
    own.on_cpu += node.on_cpu;
    own.bytes += node.bytes;
    own.accelerated = own.accelerated && node.accelerated;
    own.nodes.push_back(static_cast<std::int32_t>(i));
  }
  result.dag.nodes = static_cast<std::int32_t>(result.blocks.size());
  for (std::size_t from = 0; from < after.size(); ++from)
    for (const std::int32_t to : after[from])
      if (const auto edge = std::pair(block_of(static_cast<std::int32_t>(from)), block_of(to));
          edge.first != edge.second)
        result.dag.edges.push_back(edge);
  std::vector<std::set<std::int32_t>> readers(placement.nodes.size());
  for (const auto& [from, to] : placement.edges) {
    const std::int32_t a = block_of(placement.nodes[slot(from)].class_of);
    const std::int32_t b = block_of(placement.nodes[slot(to)].class_of);
    if (a != b) readers[slot(from)].insert(b);
  }
  for (std::size_t i = 0; i < readers.size(); ++i) {
    if (readers[i].empty() || placement.nodes[i].send <= 0) continue;
    const auto sender = static_cast<std::int32_t>(result.senders.size());
    const std::int32_t block = block_of(placement.nodes[i].class_of);
    result.senders.push_back({block, placement.nodes[i].send, {readers[i].begin(), readers[i].end()}});
    result.blocks[slot(block)].senders.push_back(sender);
    for (const std::int32_t reader : readers[i]) result.blocks[slot(reader)].heard.push_back(sender);
  }
  return result;
}

}  // namespace weft::partition
