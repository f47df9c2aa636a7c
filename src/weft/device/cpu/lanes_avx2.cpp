// The kernels of lanes.h for x86 processors of 2013 and later: vectors of 8 floats.
#if defined(__x86_64__)

// Before the pragma: functions that other sources share must not be compiled for avx2.
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
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define WEFT_LANES_WIDTH 8

#include "weft/device/cpu/lanes_kernels.h"

namespace weft::device::cpu {

const LaneKernels kAvx2Lanes = WEFT_LANES::kLaneKernels;

}  // namespace weft::device::cpu

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
