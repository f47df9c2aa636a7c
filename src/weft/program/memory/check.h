// weft/program/memory/check.h -- verifies a packing.
//
// Shares no code with the packers: it walks through the steps, tracks the address ranges in use,
// and reports the first buffer that overlaps another.
#pragma once
#include <span>

#include "weft/base/result.h"
#include "weft/program/memory/pack.h"

namespace weft::memory {

// Succeeds if and only if every offset is a multiple of the alignment, no two buffers alive at the
// same step overlap, none ends above the capacity, and the peak is the highest end.
Status check(std::span<const Buffer> buffers, const Packing& packing, const PackOptions& options = {});

}  // namespace weft::memory
