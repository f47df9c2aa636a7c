// weft/device/cpu/lanes_map.h -- applies a vector function to arrays and scalars.
//
//   map<plus>(n, y, Varying{x}, Uniform{1});          y[i] = x[i] + 1
#pragma once
#include <cstdint>
#include <cstring>

#include "weft/device/cpu/lanes_vector.h"

namespace weft::device::cpu::WEFT_LANES {

// An operand that varies along the loop, and a constant one.
struct Varying {
  const float* data;
  Vector at(std::int64_t i) const { return load(data + i, AllLanes{}, 0); }
};
struct Uniform {
  float value;
  Vector at(std::int64_t) const { return splat(value); }
};

// Four independent vectors per step hide the latency of the function's dependent operations.
inline constexpr int kStep = 4 * kWidth;

// REQUIRES: n is a multiple of kStep.
template <auto kOf, class... Operand>
[[gnu::flatten, gnu::noinline]] void map_whole_steps(std::int64_t n, float* result, Operand... x) {
  for (std::int64_t i = 0; i < n; i += kStep) {
    const Vector y0 = kOf(x.at(i)...);
    const Vector y1 = kOf(x.at(i + kWidth)...);
    const Vector y2 = kOf(x.at(i + 2 * kWidth)...);
    const Vector y3 = kOf(x.at(i + 3 * kWidth)...);
    store(result + i, y0, AllLanes{});
    store(result + i + kWidth, y1, AllLanes{});
    store(result + i + 2 * kWidth, y2, AllLanes{});
    store(result + i + 3 * kWidth, y3, AllLanes{});
  }
}

// Pads the last elements of an operand, fewer than kStep, to a full step.
struct Room {
  float floats[kStep];
};
inline Varying padded(Varying x, std::int64_t from, std::int64_t n, Room&& room) {
  for (float& element : room.floats) element = 1;
  std::memcpy(room.floats, x.data + from, static_cast<std::size_t>(n - from) * sizeof(float));
  return {room.floats};
}
inline Uniform padded(Uniform x, std::int64_t, std::int64_t, Room&&) { return x; }

// result[i] = kOf(x[i], ..) for i in [0, n).
template <auto kOf, class... Operand>
void map(std::int64_t n, float* result, Operand... x) {
  const std::int64_t whole = n - n % kStep;
  map_whole_steps<kOf>(whole, result, x...);
  if (whole == n) return;
  Room last;
  map_whole_steps<kOf>(kStep, last.floats, padded(x, whole, n, Room())...);
  std::memcpy(result + whole, last.floats, static_cast<std::size_t>(n - whole) * sizeof(float));
}

}  // namespace weft::device::cpu::WEFT_LANES
