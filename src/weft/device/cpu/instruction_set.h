// weft/device/cpu/instruction_set.h -- selects the vector instruction set of the kernels.
//
//   baseline    the build's target: SSE2 on x86, NEON on aarch64
//   avx2        with FMA and F16C: x86 processors of 2013 and later
//   avx512      F, BW, DQ and VL: x86 servers of 2017 and later
//
// Kernels with several versions run the widest. WEFT_INSTRUCTIONS=avx2 or =baseline selects a
// narrower one, as tests do. Sums keep their order, but only some sets fuse a multiplication and an
// addition.
#pragma once
#include <cstdint>

namespace weft::device::cpu {

enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };

InstructionSet instruction_set();  // constant for the lifetime of the process

}  // namespace weft::device::cpu
