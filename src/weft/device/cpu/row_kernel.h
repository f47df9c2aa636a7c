// weft/device/cpu/row_kernel.h -- runs a loop over rows: an interpreter whose every step is a vector loop.
//
// Registers that are loaded as they lie, or stored as they come, are that memory; the others share a
// few rows of scratch. The pass over a row then touches memory for what the plan must read and write,
// and the nearest cache for the rest.
#pragma once
#include "weft/device/cpu/kernel.h"

namespace weft::device::cpu {

std::unique_ptr<Kernel> make_row_kernel(const program::Program& program, const program::Unit& unit,
                                        std::byte* memory);

}  // namespace weft::device::cpu
