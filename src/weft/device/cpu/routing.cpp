#include "weft/device/cpu/routing.h"

#include <algorithm>
#include <numeric>

namespace weft::device::cpu {
namespace {

bool is_above(float a, float b) { return a > b || (a != a && b == b); }

// For small counts: insertion into a sorted list; one comparison rejects nearly every element.
void take_few(const TopKRows& rows, const float* x, float* values, std::int32_t* positions) {
  std::int64_t taken = 0;
  for (std::int64_t i = 0; i < rows.length; ++i) {
    const float value = x[i];
    if (taken == rows.count) {
      if (!is_above(value, values[taken - 1])) continue;
      --taken;
    }
    std::int64_t at = taken++;
    for (; at > 0 && is_above(value, values[at - 1]); --at) {
      values[at] = values[at - 1];
      positions[at] = positions[at - 1];
    }
    values[at] = value;
    positions[at] = static_cast<std::int32_t>(i);
  }
}

void take_many(const TopKRows& rows, const float* x, float* values, std::int32_t* positions,
               std::int32_t* order) {
  std::iota(order, order + rows.length, 0);
  std::partial_sort(order, order + rows.count, order + rows.length, [&](std::int32_t a, std::int32_t b) {
    return is_above(x[a], x[b]) || (!is_above(x[b], x[a]) && a < b);
  });
  for (std::int64_t k = 0; k < rows.count; ++k) {
    values[k] = x[order[k]];
    positions[k] = order[k];
  }
}

template <class Expert>
void slots_of(const Slots& slots, std::int64_t begin, std::int64_t end, const Expert* experts,
              std::int32_t* y, std::byte* scratch) {
  auto* const taken = reinterpret_cast<std::int64_t*>(scratch);
  for (std::int64_t row = begin; row < end; ++row) {
    std::fill_n(taken, slots.experts, 0);
    for (std::int64_t i = row * slots.length; i < (row + 1) * slots.length; ++i) {
      const std::int64_t expert = experts[i];
      const bool fits = expert >= 0 && expert < slots.experts && taken[expert] < slots.capacity;
      y[i] = fits ? static_cast<std::int32_t>(expert * slots.capacity + taken[expert]++) : -1;
    }
  }
}

}  // namespace

void top_k(const TopKRows& rows, std::int64_t begin, std::int64_t end, const float* x, float* values,
           std::int32_t* positions, std::byte* scratch) {
  constexpr std::int64_t kFew = 32;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* from = x + row * rows.length;
    float* to = values + row * rows.count;
    std::int32_t* places = positions + row * rows.count;
    if (rows.count <= kFew)
      take_few(rows, from, to, places);
    else
      take_many(rows, from, to, places, reinterpret_cast<std::int32_t*>(scratch));
  }
}

void slots(const Slots& slots, std::int64_t begin, std::int64_t end, const std::int32_t* experts,
           std::int32_t* y, std::byte* scratch) {
  slots_of(slots, begin, end, experts, y, scratch);
}
void slots(const Slots& slots, std::int64_t begin, std::int64_t end, const std::int64_t* experts,
           std::int32_t* y, std::byte* scratch) {
  slots_of(slots, begin, end, experts, y, scratch);
}

}  // namespace weft::device::cpu
