// weft/program/memory/peak_step.h -- finds the step with the most live bytes.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/program/memory/pack.h"

namespace weft::memory {

struct PeakStep {
  std::int64_t step = 0;               // the first with the most bytes
  std::int64_t bytes = 0;              // live there, sizes rounded up to the alignment
  std::vector<std::uint32_t> buffers;  // live there, largest first
};

// REQUIRES: buffers and alignment that pack() accepts.
PeakStep find_peak_step(std::span<const Buffer> buffers, std::int64_t alignment);

// "step 7 with 1,536 bytes in 4 buffers, the largest 2 (1,024 bytes), 0 (256 bytes) and 5 (128 bytes)"
std::string describe(const PeakStep& crowd, std::span<const Buffer> buffers);

}  // namespace weft::memory
