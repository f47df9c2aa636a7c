// weft/device/cpu/instruction_set.h -- which vector instructions the kernels use.
//
//   baseline    what the build asks for: SSE2 on x86, NEON on aarch64
//   avx2        with FMA and F16C: x86 processors of 2013 and later
//   avx512      F, BW, DQ and VL: x86 servers of 2017 and later
//
// A kernel that exists for several of them runs the widest. WEFT_INSTRUCTIONS=avx2 or =baseline selects a narrower
// one, as tests do: sums keep their order, but where one rounds a product and a sum together, another does not.
#pragma once
#include <cstdint>

namespace weft::device::cpu {

enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };

InstructionSet instruction_set();  // the same during the whole life of the process

}  // namespace weft::device::cpu
