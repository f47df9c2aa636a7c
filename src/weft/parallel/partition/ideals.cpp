#include "weft/parallel/partition/ideals.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

namespace weft::partition {
namespace {

using Neighbours = std::vector<std::vector<std::int32_t>>;

Neighbours followers(const Dag& dag) {
  Neighbours after(static_cast<std::size_t>(dag.nodes));
  for (const auto& [from, to] : dag.edges) after[slot(from)].push_back(to);
  for (auto& list : after) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return after;
}

std::vector<std::int32_t> in_degrees(const Neighbours& after) {
  std::vector<std::int32_t> degrees(after.size());
  for (const auto& list : after)
    for (const std::int32_t to : list) ++degrees[slot(to)];
  return degrees;
}

}  // namespace

Result<std::vector<std::int32_t>> topological_order(const Dag& dag) {
  const Neighbours after = followers(dag);
  std::vector<std::int32_t> waits = in_degrees(after);
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ready;
  for (std::int32_t node = 0; node < dag.nodes; ++node)
    if (waits[slot(node)] == 0) ready.push(node);
  std::vector<std::int32_t> order;
  order.reserve(after.size());
  while (!ready.empty()) {
    const std::int32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const std::int32_t to : after[slot(node)])
      if (--waits[slot(to)] == 0) ready.push(to);
  }
  if (order.size() == after.size()) return order;
  const auto stuck = std::ranges::find_if(waits, [](std::int32_t wait) { return wait > 0; });
  return user_error(
      fmt::format("expected no cycle, found one before or through node {}", stuck - waits.begin()));
}

bool Ideals::within(std::int32_t inner, std::int32_t outer) const {
  const std::uint64_t* a = &bits_[slot(inner) * words_];
  const std::uint64_t* b = &bits_[slot(outer) * words_];
  for (std::size_t word = 0; word < words_; ++word)
    if ((a[word] & ~b[word]) != 0) return false;
  return true;
}

std::vector<std::int32_t> Ideals::between(std::int32_t inner, std::int32_t outer) const {
  std::vector<std::int32_t> nodes;
  for (std::int32_t node = 0; node < static_cast<std::int32_t>(words_ * 64); ++node)
    if (has(outer, node) && !has(inner, node)) nodes.push_back(node);
  return nodes;
}

// Breadth-first, so that ideals are numbered by size.
bool Ideals::enumerate(const Dag& dag, std::int32_t most) {
  const Neighbours after = followers(dag);
  const std::vector<std::int32_t> degrees = in_degrees(after);
  Neighbours before(after.size());
  for (std::size_t from = 0; from < after.size(); ++from)
    for (const std::int32_t to : after[from]) before[slot(to)].push_back(static_cast<std::int32_t>(from));
  words_ = std::max<std::size_t>(1, (after.size() + 63) / 64);
  bits_.assign(words_, 0);
  std::unordered_map<std::string, std::int32_t> known;  // ideals with one node more than `ideal`
  Neighbours ready(1), next_ready;                      // by ideal: nodes that may be added
  for (std::int32_t node = 0; node < dag.nodes; ++node)
    if (degrees[slot(node)] == 0) ready[0].push_back(node);
  std::int32_t count = 1, level = 0, level_end = 1;
  for (std::int32_t ideal = 0; ideal < count; ++ideal) {
    if (ideal == level_end) {
      level = level_end;
      level_end = count;
      known.clear();
      ready = std::move(next_ready);
      next_ready.clear();
    }
    first_.push_back(steps_.size());
    const auto& choices = ready[static_cast<std::size_t>(ideal - level)];
    for (const std::int32_t node : choices) {
      std::vector<std::uint64_t> bits(&bits_[slot(ideal) * words_], &bits_[slot(ideal) * words_] + words_);
      bits[slot(node) / 64] |= std::uint64_t{1} << (node % 64);
      std::string key(reinterpret_cast<const char*>(bits.data()), words_ * sizeof(std::uint64_t));
      const auto [at, is_new] = known.emplace(std::move(key), count);
      steps_.push_back({node, at->second});
      if (!is_new) continue;
      if (++count > most) return false;
      bits_.insert(bits_.end(), bits.begin(), bits.end());
      std::vector<std::int32_t> then;
      for (const std::int32_t other : choices)
        if (other != node) then.push_back(other);
      for (const std::int32_t to : after[slot(node)])
        if (std::ranges::all_of(before[slot(to)], [&](std::int32_t from) { return has(count - 1, from); }))
          then.push_back(to);
      next_ready.push_back(std::move(then));
    }
  }
  first_.push_back(steps_.size());
  return true;
}

Ideals ideals_of(const Dag& dag, std::span<const std::int32_t> order, std::int32_t most) {
  Ideals ideals;
  if (ideals.enumerate(dag, most)) return ideals;
  Dag chain{dag.nodes, {}};
  for (std::size_t i = 1; i < order.size(); ++i) chain.edges.emplace_back(order[i - 1], order[i]);
  ideals = {};
  ideals.enumerate(chain, dag.nodes + 1);
  ideals.complete_ = false;
  return ideals;
}

}  // namespace weft::partition
