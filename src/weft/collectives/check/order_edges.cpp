#include "weft/collectives/check/order_edges.h"

#include <algorithm>

namespace weft::collective {

std::int32_t OrderEdges::new_chain() {
  chains_.emplace_back();
  return static_cast<std::int32_t>(chains_.size()) - 1;
}

std::int32_t OrderEdges::add_node() { return nodes_++; }

std::int32_t OrderEdges::add_to_chain(std::int32_t chain) {
  chains_[static_cast<std::size_t>(chain)].push_back(nodes_);
  return nodes_++;
}

std::vector<std::int32_t> OrderEdges::renumber() {
  std::vector<std::int32_t> number(static_cast<std::size_t>(nodes_), -1);
  std::int32_t next = 0;
  for (const auto& chain : chains_) {
    if (chain.empty()) continue;
    threads_.push_back({0, next, next + static_cast<std::int32_t>(chain.size())});
    for (const std::int32_t node : chain) number[static_cast<std::size_t>(node)] = next++;
  }
  for (std::int32_t& n : number)
    if (n < 0) {
      threads_.push_back({0, next, next + 1});
      n = next++;
    }
  for (auto* edges : {&edges_, &program_order_})
    for (Edge& edge : *edges)
      edge = {number[static_cast<std::size_t>(edge.from)], number[static_cast<std::size_t>(edge.to)],
              edge.relaxed};
  return number;
}

HappensBefore OrderEdges::graph(bool with_relaxed) const {
  const auto count = static_cast<std::size_t>(nodes_);
  HappensBefore graph;
  graph.threads = threads_;
  graph.thread.resize(count);
  for (std::size_t t = 0; t < threads_.size(); ++t)
    std::fill(graph.thread.begin() + threads_[t].first, graph.thread.begin() + threads_[t].end,
              static_cast<std::int32_t>(t));
  graph.first_before.assign(count + 1, 0);
  for (const Edge& edge : edges_)
    if (with_relaxed || !edge.relaxed) ++graph.first_before[static_cast<std::size_t>(edge.to) + 1];
  for (std::size_t i = 0; i < count; ++i) graph.first_before[i + 1] += graph.first_before[i];
  graph.predecessors.resize(static_cast<std::size_t>(graph.first_before.back()));
  std::vector<std::int32_t> next(graph.first_before.begin(), graph.first_before.end() - 1);
  for (const Edge& edge : edges_)
    if (with_relaxed || !edge.relaxed)
      graph.predecessors[static_cast<std::size_t>(next[static_cast<std::size_t>(edge.to)]++)] = edge.from;
  return graph;
}

std::vector<std::int32_t> OrderEdges::play() const {
  const auto count = static_cast<std::size_t>(nodes_);
  std::vector<std::int32_t> first(count + 1, 0), waits(count, 0);
  std::vector<Edge> all = edges_;
  all.insert(all.end(), program_order_.begin(), program_order_.end());
  for (const HappensBefore::Thread& thread : threads_)
    for (std::int32_t node = thread.first + 1; node < thread.end; ++node)
      all.push_back({node - 1, node, false});
  for (const Edge& edge : all) {
    ++first[static_cast<std::size_t>(edge.from) + 1];
    ++waits[static_cast<std::size_t>(edge.to)];
  }
  for (std::size_t i = 0; i < count; ++i) first[i + 1] += first[i];
  std::vector<std::int32_t> later(all.size()), next(first.begin(), first.end() - 1);
  for (const Edge& edge : all)
    later[static_cast<std::size_t>(next[static_cast<std::size_t>(edge.from)]++)] = edge.to;
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < count; ++i)
    if (waits[i] == 0) order.push_back(static_cast<std::int32_t>(i));
  for (std::size_t at = 0; at < order.size(); ++at) {
    const auto node = static_cast<std::size_t>(order[at]);
    for (std::int32_t i = first[node]; i < first[node + 1]; ++i)
      if (const std::int32_t freed = later[static_cast<std::size_t>(i)];
          --waits[static_cast<std::size_t>(freed)] == 0)
        order.push_back(freed);
  }
  return order;
}

}  // namespace weft::collective
