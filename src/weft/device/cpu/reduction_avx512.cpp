// The kernels of reduction.h for x86 servers of 2017 and later: vectors of 64 bytes.
#if defined(__x86_64__)

#if !defined(__clang__)  // g++ 12 warns about registers that its own intrinsics leave undefined on purpose
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// Before the pragma: functions that other sources share must not be compiled for avx512.
#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "weft/device/cpu/reduction.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c"))), \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")
#endif
#define WEFT_REDUCTIONS_BYTES 64

#include "weft/device/cpu/reduction_kernels.h"

namespace weft::device::cpu {

const ReductionKernels kAvx512Reductions = WEFT_REDUCTIONS::kReductionKernels;

}  // namespace weft::device::cpu

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
