#include "weft/program/memory/first_fit.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weft::memory {

std::optional<Collisions> Collisions::among(const Piece& piece, std::size_t limit) {
  std::vector<std::uint32_t> by_birth(piece.boxes.size());
  std::iota(by_birth.begin(), by_birth.end(), 0u);
  std::ranges::stable_sort(by_birth, {}, [&](std::uint32_t b) { return piece.boxes[b].first; });

  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  std::vector<std::uint32_t> alive;
  for (const std::uint32_t box : by_birth) {
    const std::int32_t now = piece.boxes[box].first;
    std::erase_if(alive, [&](std::uint32_t other) { return piece.boxes[other].past <= now; });
    if (pairs.size() + alive.size() > limit) return std::nullopt;
    for (const std::uint32_t other : alive) pairs.emplace_back(box, other);
    alive.push_back(box);
  }

  Collisions result;
  result.begins_.resize(piece.boxes.size() + 1);
  result.others_.resize(2 * pairs.size());
  for (const auto& [a, b] : pairs) ++result.begins_[a + 1], ++result.begins_[b + 1];
  std::partial_sum(result.begins_.begin(), result.begins_.end(), result.begins_.begin());
  std::vector<std::size_t> next(result.begins_.begin(), result.begins_.end() - 1);
  for (const auto& [a, b] : pairs) {
    result.others_[next[a]++] = b;
    result.others_[next[b]++] = a;
  }
  return result;
}

std::vector<std::int64_t> first_fit(const Piece& piece, const Collisions& collisions,
                                    std::span<const std::uint32_t> order) {
  constexpr std::int64_t kUnplaced = -1;
  std::vector<std::int64_t> offsets(piece.boxes.size(), kUnplaced);
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // [offset, end) of conflicting boxes
  for (const std::uint32_t box : order) {
    taken.clear();
    for (const std::uint32_t other : collisions.of(box))
      if (offsets[other] != kUnplaced)
        taken.emplace_back(offsets[other], offsets[other] + piece.boxes[other].size);
    std::ranges::sort(taken);
    std::int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - offset >= piece.boxes[box].size) break;
      offset = std::max(offset, end);
    }
    offsets[box] = offset;
  }
  return offsets;
}

}  // namespace weft::memory
