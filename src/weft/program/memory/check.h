// weft/program/memory/check.h -- judges a packing.
//
// Shares no code with what makes packings: it walks through the steps, keeps the stretches of memory
// in use, and complains at the first buffer that is put where another lies.
#pragma once
#include <span>

#include "weft/base/result.h"
#include "weft/program/memory/pack.h"

namespace weft::memory {

// Succeeds iff every buffer has an offset that is a multiple of the alignment, no two buffers alive
// at one step overlap, none ends above the capacity, and the peak is where the highest ends.
Status check(std::span<const Buffer> buffers, const Packing& packing, const PackOptions& options = {});

}  // namespace weft::memory
