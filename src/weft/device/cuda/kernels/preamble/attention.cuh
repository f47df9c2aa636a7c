// preamble/attention.cuh -- attention_source.cpp defines these.
#pragma once
#include "../prelude.cuh"

typedef weft_bf16 T;
#define WEFT_T "bf16"
#define WEFT_MASK const unsigned char *mask,
#define WEFT_MASK_AT(row, key) (mask + at_mask + (row)*kMaskQ + (key)*kMaskK)
#define WEFT_SEEN (*WEFT_MASK_AT(row, key) != 0)
// Offsets of the rows of `head` in each tensor, and their TMA coordinates.
#define WEFT_HEADS                                                                                          \
  long long at_q = 0, at_k = 0, at_v = 0, at_y = 0, at_sum = 0, at_dy = 0, at_dq = 0, at_dk = 0, at_dv = 0, \
            at_mask = 0;
#define WEFT_COORDINATES                                                                                 \
  int q_1 = int(head), q_2 = 0, q_3 = 0, k_1 = 0, k_2 = 0, k_3 = 0, v_1 = 0, v_2 = 0, v_3 = 0, dy_1 = 0, \
      dy_2 = 0, dy_3 = 0;
// Widths of queries and values, padded to 16, and in swizzled tiles of 64 columns.
constexpr int kQueries = 1024, kKeys = 1024, kE = 64, kF = 64, kEP = 64, kFP = 64, kHeads = 8, kSharing = 2;
constexpr int kEC = 1, kFC = 1;
constexpr bool kCausal = true, kWindowed = false, kMasked = true, kAligned = true;
constexpr long long kBegin = 0ll, kReach = 0ll, kMaskQ = 1024, kMaskK = 1;
constexpr long long kQ = 64, kK = 64, kV = 64, kY = 64, kSum = 1, kDY = 64, kDQ = 64, kDK = 64,
                    kDV = 64;  // strides
constexpr float kFactor = 0.125f, kScaleLog2 = 0.18f, kFactorLeft = 1.0f;
// Tile sizes: forward; gradients by queries and by keys; gradient on Hopper.
constexpr int kThreads = 384, kM = 128, kN = 128, kTall = 2, kStages = 2;
constexpr int kWarpgroups = 2, kProducerRegisters = 24, kConsumerRegisters = 240;
constexpr int kThreadsQ = 128, kMQ = 64, kNQ = 64, kThreadsK = 128, kMK = 64, kNK = 64;
constexpr int kMB = 128, kNB = 128, kTogether = 1;
constexpr bool kRising = false;
// d (+)= a b with wgmma, a in shared memory or in registers; one for each number of columns.
template <int kTransposeA, int kTransposeB, int n>
__device__ void weft_wgmma_ss(float (&d)[n], unsigned long long a, unsigned long long b, int add);
template <int kTransposeB, int n>
__device__ void weft_wgmma_rs(float (&d)[n], const unsigned* a, unsigned long long b);
