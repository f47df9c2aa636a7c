// The kernels of reduction.h for x86 processors of 2013 and later: vectors of 32 bytes.
#if defined(__x86_64__)

// Before the pragma: functions that other sources share must not be compiled for avx2.
#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "weft/device/cpu/reduction.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c")
#endif
#define WEFT_REDUCTIONS_BYTES 32

#include "weft/device/cpu/reduction_kernels.h"

namespace weft::device::cpu {

const ReductionKernels kAvx2Reductions = WEFT_REDUCTIONS::kReductionKernels;

}  // namespace weft::device::cpu

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
