// weft/device/cpu/dropout.h -- zeroes a random share of the elements and scales up the rest.
//
//   y = x / (1 - rate)  where  uniform_at(step, stream, place) >= rate,  else 0
//
// The mask equals that of base/random.h and ops/dropout.cpp bit for bit. It depends only on the
// step, the stream and the element's position in the whole tensor. The gradient is the same call on
// dy.
#pragma once
#include <cstdint>

namespace weft::device::cpu {

struct Dropout {
  std::uint64_t step = 0, stream = 0;
  double rate = 0;
};

// x[0] is the element at `place`; y may be x.
void dropout(const Dropout& drop, std::uint64_t place, std::int64_t n, const float* x, float* y);

}  // namespace weft::device::cpu
