// weft/program/memory/pack.h -- assigns an address to every buffer.
//
//   offset ^      +---b---+     A buffer is a box, as wide as its lifetime and as tall as its size.
//          |      |       |     Packing moves the boxes down until none overlap, so that the peak,
//          |  +---+---+---+     the highest top, is as low as possible or fits the device. Here a
//          |  |   a   |         lives over steps [1,5) and b over [3,7): they share steps 3 and 4,
//          +--1---3---5---7--> step                                              so b sits on a.
//
// Deterministic: the same buffers in the same order get the same offsets on every machine, since
// effort is counted in decisions instead of seconds. check.h verifies a packing and shares no code
// with the packers.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "weft/base/result.h"

namespace weft::memory {

struct Buffer {
  std::int64_t born = 0, dies = 0;  // half-open, in steps: alive from born, free again at dies
  std::int64_t size = 0;            // in bytes

  // A buffer that is never alive, or empty, takes no space.
  bool takes_place() const { return size > 0 && born < dies; }
  std::int64_t padded_size(std::int64_t alignment) const {
    return (size + alignment - 1) / alignment * alignment;
  }
};

struct Packing {
  std::vector<std::int64_t> offsets;  // offsets[i] belongs to buffers[i]
  std::int64_t peak = 0;              // the highest top, sizes rounded up to the alignment
};

inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

struct PackOptions {
  std::int64_t capacity = kUnlimited;  // in bytes
  std::int64_t alignment = 1;          // offsets are multiples of it, sizes are rounded up to it
  // The number of decisions for the exact search if the heuristics miss their goal. Zero disables
  // it; more may find a lower peak. The full default takes one second for a hundred conflicting
  // buffers and a dozen for four hundred; groups of more than 1,000 are not searched.
  std::int64_t effort = 200'000;
};

// The most bytes alive at one step, a lower bound for any packing. REQUIRES: buffers and alignment
// that pack() accepts.
std::int64_t lower_bound(std::span<const Buffer> buffers, std::int64_t alignment = 1);

// The lowest packing found or, with a capacity, the first found that fits. Fails if none is found,
// and names the step with the most live bytes and its largest buffers. Also a user error: a
// negative size, a buffer that dies before it is born, an alignment that is not positive, or sizes
// whose sum overflows 64 bits.
Result<Packing> pack(std::span<const Buffer> buffers, const PackOptions& options = {});

}  // namespace weft::memory
