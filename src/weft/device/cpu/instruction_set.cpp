#include "weft/device/cpu/instruction_set.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace weft::device::cpu {
namespace {

InstructionSet widest() {
#if defined(__x86_64__)
  // clang 14's __builtin_cpu_supports does not know F16C.
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has_f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  __builtin_cpu_init();
  if (!has_f16c || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    return InstructionSet::baseline;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_avx512 ? InstructionSet::avx512 : InstructionSet::avx2;
#else
  return InstructionSet::baseline;
#endif
}

InstructionSet most_wanted() {
  const char* const name = std::getenv("WEFT_INSTRUCTIONS");
  if (name == nullptr) return InstructionSet::avx512;
  if (std::string_view(name) == "baseline") return InstructionSet::baseline;
  return std::string_view(name) == "avx2" ? InstructionSet::avx2 : InstructionSet::avx512;
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet chosen = std::min(widest(), most_wanted());
  return chosen;
}

}  // namespace weft::device::cpu
