#include "weft/program/memory/preference.h"

#include <algorithm>
#include <numeric>

#include "weft/base/random.h"

namespace weft::memory {
namespace {

// Integers only, so that the order is the same on every machine.
__extension__ using Weight = __int128;

Weight weight(const Box& box, Preference preference) {
  constexpr Weight kLargestSize = Weight{1} << 40;  // larger sizes count as equal, so that products fit
  const Weight width = box.width(), size = std::min<Weight>(box.size, kLargestSize);
  switch (preference) {
    case Preference::wide: return width * kLargestSize + size;
    case Preference::tall_area: return width * size * size;
    case Preference::tall: return size;
    case Preference::wide_area: return width * width * size;
    case Preference::area: return width * size;
    case Preference::wide_and_flat: return width * kLargestSize - size;
  }
  return 0;
}

}  // namespace

std::vector<std::uint32_t> ranked(std::span<const Box> boxes, Preference preference, std::uint64_t variant) {
  std::vector<Weight> weights(boxes.size());
  Random random(variant);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    // Up to 50 % more: swaps neighbours in the order, but not its two ends.
    weights[i] = weight(boxes[i], preference) * (1024 + (variant == 0 ? 0 : random.between(0, 512)));
  }
  std::vector<std::uint32_t> order(boxes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return weights[a] > weights[b]; });
  return order;
}

}  // namespace weft::memory
