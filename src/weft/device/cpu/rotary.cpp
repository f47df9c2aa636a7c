#include "weft/device/cpu/rotary.h"

#include <cmath>

namespace weft::device::cpu {

void rotary_table(const Rotary& rotary, double base, std::int64_t first, float* cosines, float* sines) {
  const auto half = static_cast<double>(rotary.half);
  for (std::int64_t i = 0; i < rotary.half; ++i) {
    const double pace = std::pow(base, -static_cast<double>(i) / half);
    for (std::int64_t p = 0; p < rotary.positions; ++p) {
      const double angle = static_cast<double>(first + p) * pace;
      cosines[p * rotary.half + i] = static_cast<float>(std::cos(angle));
      sines[p * rotary.half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void rotate_rows(const Rotary& rotary, std::int64_t begin, std::int64_t end, const float* x,
                 const float* cosines, const float* sines, float* y) {
  const std::int64_t half = rotary.half;
  const float direction = rotary.inverse ? -1.0f : 1.0f;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t turn = row / rotary.between % rotary.positions * half;
    const float *first = x + row * 2 * half, *second = first + half, *cosine = cosines + turn,
                *sine = sines + turn;
    float *first_out = y + row * 2 * half, *second_out = first_out + half;
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = first[i], b = second[i], s = direction * sine[i];
      first_out[i] = a * cosine[i] - b * s;
      second_out[i] = b * cosine[i] + a * s;
    }
  }
}

}  // namespace weft::device::cpu
