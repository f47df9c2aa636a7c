// preamble/pooling.cuh -- call_pool.cpp defines these.
#pragma once
#include "../prelude.cuh"

typedef weft_bf16 T;  // of x
typedef weft_bf16 D;  // of its gradient
constexpr unsigned kHeight = 112, kWidth = 112;
constexpr int kHigh = 56, kWide = 56, kSize = 3, kStride = 2, kTop = 1, kLeft = 1, kBands = 4, kBand = 14,
              kUnrolled = 3;
// For the gradient: adjacent elements of x per thread, and the range of windows that may contain
// them.
constexpr int kRun = 8, kRuns = 14, kPack = 8, kShared = 896, kFirst = 0, kLast = 4;
