// The kernels of lanes.h for x86 servers of 2017 and later: vectors of 16 floats.
#if defined(__x86_64__)

#if !defined(__clang__)  // g++ 12 warns about registers that its own intrinsics leave undefined on purpose
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// Before the pragma: functions that other sources share must not be compiled for avx512.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/device/cpu/lanes.h"
#include "weft/plan/ops/pointwise.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx2,fma")
#endif
#define WEFT_LANES_WIDTH 16

#include "weft/device/cpu/lanes_kernels.h"

namespace weft::device::cpu {

const LaneKernels kAvx512Lanes = WEFT_LANES::kLaneKernels;

}  // namespace weft::device::cpu

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
