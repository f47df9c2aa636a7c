// weft/program/memory/pack.h -- gives every buffer an address.
//
//   offset ^      +---b---+     A buffer is a box, as wide as its life and as tall as its size.
//          |      |       |     Packing slides the boxes down until none overlap and the highest
//          |  +---+---+---+     edge, the peak, is as low as it can be or fits the device. Here a
//          |  |   a   |         lives over steps [1,5) and b over [3,7): they share steps 3 and 4,
//          +--1---3---5---7--> step                                              so b sits on a.
//
// Pure: the same buffers in the same order always get the same offsets, on every machine, for
// effort is counted in decisions and not in seconds. check.h judges a packing and shares no code
// with what made it.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "weft/base/result.h"

namespace weft::memory {

struct Buffer {
  std::int64_t born = 0, dies = 0;  // half-open, in steps: alive at born, free again at dies
  std::int64_t size = 0;            // in bytes

  // What is never alive or holds nothing takes no place.
  bool takes_place() const { return size > 0 && born < dies; }
  std::int64_t padded_size(std::int64_t alignment) const {
    return (size + alignment - 1) / alignment * alignment;
  }
};

struct Packing {
  std::vector<std::int64_t> offsets;  // offsets[i] belongs to buffers[i]
  std::int64_t peak = 0;              // the highest edge, sizes rounded up to the alignment
};

inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

struct PackOptions {
  std::int64_t capacity = kUnlimited;  // in bytes
  std::int64_t alignment = 1;          // offsets are multiples of it, sizes are rounded up to one
  // How many decisions the exact search may take where the quick packers miss their goal. Zero does
  // without it; more may find a lower peak. Spent to the end, this many take a second for a hundred
  // buffers that collide, a dozen for four hundred; more than 1,000 are not searched.
  std::int64_t effort = 200'000;
};

// The most bytes alive at one step, which no packing can stay below.
// REQUIRES: what pack() asks of buffers and alignment.
std::int64_t lower_bound(std::span<const Buffer> buffers, std::int64_t alignment = 1);

// The lowest packing found, or, under a capacity, the first found to fit it. Fails when it finds
// none, naming the most crowded step and the largest buffers alive there; and as the user's mistake
// when a size is negative, a buffer dies before it is born, the alignment is not positive, or the
// sizes add up to more than 64 bits hold.
Result<Packing> pack(std::span<const Buffer> buffers, const PackOptions& options = {});

}  // namespace weft::memory
