// weft/collectives/chunks/restate.h -- parses the collective that a program is supposed to compute.
//
//   broadcast              the collective; its chunks follow from the buffers
//   gather(root=2)
//   out[r] = in[r+1]       a shift: every rank that has such a neighbour gets that neighbour's input
//
// MSCCL files write `custom` for collectives that MSCCL has no name for, and no file names a root.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"

namespace weft::collective {

// `inputs` and `outputs` are the buffers' chunks per rank; 0 if a buffer is part of another.
Result<Collective> restate(std::string_view text, std::span<const std::int32_t> inputs,
                           std::span<const std::int32_t> outputs);

}  // namespace weft::collective
