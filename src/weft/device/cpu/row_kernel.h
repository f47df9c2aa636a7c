// weft/device/cpu/row_kernel.h -- row loops: an interpreter whose every step is a vectorized loop.
//
// A register that is loaded or stored unchanged aliases its operand's memory. The others share a
// few rows of scratch memory. So a row's pass reads and writes only the plan's tensors in memory,
// and keeps everything else in L1.
#pragma once
#include "weft/device/cpu/kernel.h"

namespace weft::device::cpu {

std::unique_ptr<Kernel> make_row_kernel(const program::Program& program, const program::Unit& unit,
                                        std::byte* memory);

}  // namespace weft::device::cpu
