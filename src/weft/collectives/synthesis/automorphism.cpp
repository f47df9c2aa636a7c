#include "weft/collectives/synthesis/automorphism.h"

#include <algorithm>
#include <map>

namespace weft::synthesis {
namespace {

std::size_t spot(std::int32_t node) { return static_cast<std::size_t>(node); }
std::int64_t ends_key(std::int32_t from, std::int32_t to) { return (std::int64_t{from} << 32) | to; }
std::int32_t first_end(std::int64_t key) { return static_cast<std::int32_t>(key >> 32); }
std::int32_t second_end(std::int64_t key) { return static_cast<std::int32_t>(key & 0x7fffffff); }

}  // namespace

ArcGraph::ArcGraph(std::int32_t devices, std::int32_t nodes)
    : devices_(devices), nodes_(nodes), around_(spot(nodes)) {}

void ArcGraph::add(std::int32_t from, std::int32_t to, std::int64_t mark) {
  marks_[ends_key(from, to)] += mark;
}

void ArcGraph::close() {
  for (const auto& [key, mark] : marks_) {
    around_[spot(first_end(key))].emplace_back(second_end(key), mark);
    around_[spot(second_end(key))].emplace_back(first_end(key), -mark);
  }
  for (Signature& list : around_) std::ranges::sort(list);
}

std::vector<std::int32_t> ArcGraph::extend(const std::vector<std::int32_t>& devices) const {
  std::vector<std::int32_t> image(spot(nodes_), -1), origin(spot(nodes_), -1);
  for (std::int32_t d = 0; d < devices_; ++d)
    image[spot(d)] = devices[spot(d)], origin[spot(devices[spot(d)])] = d;
  for (bool more = true; more;) {
    more = false;
    std::map<Signature, std::vector<std::int32_t>> by_signature;
    for (std::int32_t w = devices_; w < nodes_; ++w) {
      if (origin[spot(w)] >= 0) continue;
      Signature signature;
      for (const auto& [node, mark] : around_[spot(w)])
        if (origin[spot(node)] >= 0) signature.emplace_back(node, mark);
      if (!signature.empty()) by_signature[std::move(signature)].push_back(w);
    }
    for (auto& [signature, list] : by_signature) std::ranges::reverse(list);
    std::vector<std::pair<std::int32_t, std::int32_t>> found;
    for (std::int32_t w = devices_; w < nodes_; ++w) {
      if (image[spot(w)] >= 0) continue;
      Signature signature;
      for (const auto& [node, mark] : around_[spot(w)])
        if (image[spot(node)] >= 0) signature.emplace_back(image[spot(node)], mark);
      if (signature.empty()) continue;
      std::ranges::sort(signature);
      const auto same = by_signature.find(signature);
      if (same == by_signature.end() || same->second.empty()) return {};
      found.emplace_back(w, same->second.back());
      same->second.pop_back();
    }
    for (const auto& [from, to] : found) image[spot(from)] = to, origin[spot(to)] = from, more = true;
  }
  return keeps_arcs(image) ? image : std::vector<std::int32_t>{};
}

bool ArcGraph::keeps_arcs(const std::vector<std::int32_t>& image) const {
  return std::ranges::all_of(marks_, [&](const auto& arc) {
    const std::int32_t from = image[spot(first_end(arc.first))], to = image[spot(second_end(arc.first))];
    if (from < 0 || to < 0) return false;
    const auto other = marks_.find(ends_key(from, to));
    return other != marks_.end() && other->second == arc.second;
  });
}

}  // namespace weft::synthesis
