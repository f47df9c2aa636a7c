#include "weft/device/cuda/attention_kernels.h"

namespace weft::device::cuda {
namespace {

// A tile is 32 queries by 32 keys; eight threads share a row of it, each every eighth place.
constexpr std::string_view kPlain = R"(
__device__ __forceinline__ void weft_load(float* to, const T* from, long long step, int first, int limit, int wide) {
  for (int i = threadIdx.x; i < 32 * wide; i += 256) {
    const int r = i / wide, c = i % wide;
    to[r * (wide + 1) + c] = first + r < limit ? float(from[(first + r) * step + c]) : 0.0f;
  }
}
__device__ __forceinline__ float weft_dot(const float* a, const float* b, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
template <class F>
__device__ __forceinline__ float weft_over_eight(float x, F join) {
  for (int lane = 4; lane > 0; lane /= 2) x = join(x, __shfl_xor_sync(0xffffffffu, x, lane));
  return x;
}
// to += x[row of 32] rows[32 x wide], every eighth place from `c` on
template <int kWide>
__device__ __forceinline__ void weft_gather(float (&to)[(kWide + 7) / 8], const float* x, const float* rows, int c) {
  for (int t = 0; t < 32; ++t) {
    const float factor = x[t];
    #pragma unroll
    for (int i = 0; i < (kWide + 7) / 8; ++i)
      if (c + 8 * i < kWide) to[i] += factor * rows[t * (kWide + 1) + c + 8 * i];
  }
}
)";

constexpr std::string_view kPlainForward = R"(
extern "C" __global__ __launch_bounds__(256) void weft_attend(const T* q, const T* k, const T* v, WEFT_MASK T* y, float* log_sum) {
  extern __shared__ __align__(16) float weft_floats[];
  float* const sq = weft_floats;
  float* const sk = sq + 32 * (kE + 1);
  float* const sv = sk + 32 * (kE + 1);
  float* const sp = sv + 32 * (kF + 1);
  const int r = threadIdx.x / 8, c = threadIdx.x % 8;
  constexpr int kTiles = (kQueries + 31) / 32;
  const long long head = blockIdx.x % kHeads;
  const int q0 = (kTiles - 1 - int(blockIdx.x / kHeads)) * 32;
  WEFT_HEADS
  const int row = q0 + r, last = q0 + 32 < kQueries ? q0 + 31 : kQueries - 1, end = weft_end(last);
  weft_load(sq, q + at_q, kQ, q0, kQueries, kE);
  float most = -WEFT_INFINITY, total = 0.0f, o[(kF + 7) / 8];
  #pragma unroll
  for (int i = 0; i < (kF + 7) / 8; ++i) o[i] = 0.0f;
  for (int t = weft_first(q0) / 32 * 32; t < end; t += 32) {
    __syncthreads();
    weft_load(sk, k + at_k, kK, t, kKeys, kE);
    weft_load(sv, v + at_v, kV, t, kKeys, kF);
    __syncthreads();
    float s[4], largest = most;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = t + c + 8 * i;
      bool seen = key >= weft_first(row) && key < weft_end(row);
      if (kMasked) seen = seen && row < kQueries && WEFT_SEEN;
      s[i] = seen ? weft_dot(sq + r * (kE + 1), sk + (c + 8 * i) * (kE + 1), kE) * kFactor : -WEFT_INFINITY;
      largest = fmaxf(largest, s[i]);
    }
    largest = weft_over_eight(largest, weft_join_max());
    const float shift = largest == -WEFT_INFINITY ? 0.0f : largest, smaller = expf(most - shift);
    most = largest;
    total *= smaller;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float p = expf(s[i] - shift);
      total += p;
      sp[r * 33 + c + 8 * i] = p;
    }
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < (kF + 7) / 8; ++i) o[i] *= smaller;
    weft_gather<kF>(o, sp + r * 33, sv, c);
  }
  total = weft_over_eight(total, weft_join_sum());
  if (row >= kQueries) return;
  for (int i = 0; i < (kF + 7) / 8; ++i)
    if (c + 8 * i < kF) y[at_y + row * kY + c + 8 * i] = T(total == 0.0f ? 0.0f : o[i] / total);
  if (c == 0) log_sum[at_sum + row * kSum] = total == 0.0f ? -WEFT_INFINITY : most + logf(total);
}
)";

constexpr std::string_view kPlainBack = R"(
extern "C" __global__ __launch_bounds__(256) void weft_queries_back(
    const T* q, const T* k, const T* v, const float* log_sum, const T* dy, WEFT_MASK const float* dots, T* dq) {
  extern __shared__ __align__(16) float weft_floats[];
  float* const sq = weft_floats;
  float* const sdy = sq + 32 * (kE + 1);
  float* const sk = sdy + 32 * (kF + 1);
  float* const sv = sk + 32 * (kE + 1);
  float* const sp = sv + 32 * (kF + 1);
  const int r = threadIdx.x / 8, c = threadIdx.x % 8;
  constexpr int kTiles = (kQueries + 31) / 32;
  const long long head = blockIdx.x % kHeads;
  const int q0 = (kTiles - 1 - int(blockIdx.x / kHeads)) * 32;
  WEFT_HEADS
  const int row = q0 + r, last = q0 + 32 < kQueries ? q0 + 31 : kQueries - 1, end = weft_end(last);
  weft_load(sq, q + at_q, kQ, q0, kQueries, kE);
  weft_load(sdy, dy + at_dy, kDY, q0, kQueries, kF);
  const float level = row < kQueries ? log_sum[at_sum + row * kSum] : -WEFT_INFINITY;
  const float dot = row < kQueries ? dots[head * kQueries + row] : 0.0f;
  float to[(kE + 7) / 8];
  #pragma unroll
  for (int i = 0; i < (kE + 7) / 8; ++i) to[i] = 0.0f;
  for (int t = weft_first(q0) / 32 * 32; t < end; t += 32) {
    __syncthreads();
    weft_load(sk, k + at_k, kK, t, kKeys, kE);
    weft_load(sv, v + at_v, kV, t, kKeys, kF);
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int place = c + 8 * i, key = t + place;
      bool seen = level != -WEFT_INFINITY && key >= weft_first(row) && key < weft_end(row);
      if (kMasked) seen = seen && WEFT_SEEN;
      float ds = 0.0f;
      if (seen) {
        const float p = expf(weft_dot(sq + r * (kE + 1), sk + place * (kE + 1), kE) * kFactor - level);
        ds = p * (weft_dot(sdy + r * (kF + 1), sv + place * (kF + 1), kF) - dot);
      }
      sp[r * 33 + place] = ds;
    }
    __syncwarp();
    weft_gather<kE>(to, sp + r * 33, sk, c);
  }
  if (row >= kQueries) return;
  for (int i = 0; i < (kE + 7) / 8; ++i)
    if (c + 8 * i < kE) dq[at_dq + row * kDQ + c + 8 * i] = T(to[i] * kFactor);
}

extern "C" __global__ __launch_bounds__(256) void weft_keys_back(
    const T* q, const T* k, const T* v, const float* log_sum, const T* dy, WEFT_MASK const float* dots, T* dk, T* dv) {
  extern __shared__ __align__(16) float weft_floats[];
  float* const sq = weft_floats;
  float* const sdy = sq + 32 * (kE + 1);
  float* const sk = sdy + 32 * (kF + 1);
  float* const sv = sk + 32 * (kE + 1);
  float* const sp = sv + 32 * (kF + 1);
  float* const sds = sp + 32 * 33;
  const int r = threadIdx.x / 8, c = threadIdx.x % 8;
  constexpr int kApart = kHeads / kSharing;
  const int k0 = int(blockIdx.x / kApart) * 32, key = k0 + r;
  const long long group = blockIdx.x % kApart;
  const int after = k0 + 32 < kKeys ? k0 + 32 : kKeys;
  long long low = kCausal ? k0 - kBegin : 0, high = kWindowed ? after - 1 + kReach - kBegin : kQueries;
  if (low < 0) low = 0;
  if (high > kQueries) high = kQueries;
  float to_k[(kE + 7) / 8], to_v[(kF + 7) / 8];
  #pragma unroll
  for (int i = 0; i < (kE + 7) / 8; ++i) to_k[i] = 0.0f;
  #pragma unroll
  for (int i = 0; i < (kF + 7) / 8; ++i) to_v[i] = 0.0f;
  for (int shared = 0; shared < kSharing; ++shared) {
    const long long head = group * kSharing + shared;
    WEFT_HEADS
    if (shared == 0) {
      weft_load(sk, k + at_k, kK, k0, kKeys, kE);
      weft_load(sv, v + at_v, kV, k0, kKeys, kF);
    }
    for (int q0 = int(low / 32 * 32); q0 < high; q0 += 32) {
      __syncthreads();
      weft_load(sq, q + at_q, kQ, q0, kQueries, kE);
      weft_load(sdy, dy + at_dy, kDY, q0, kQueries, kF);
      __syncthreads();
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int place = c + 8 * i, row = q0 + place;
        const float level = row < kQueries ? log_sum[at_sum + row * kSum] : -WEFT_INFINITY;
        bool seen = level != -WEFT_INFINITY && key >= weft_first(row) && key < weft_end(row);
        if (kMasked) seen = seen && WEFT_SEEN;
        float p = 0.0f, ds = 0.0f;
        if (seen) {
          p = expf(weft_dot(sk + r * (kE + 1), sq + place * (kE + 1), kE) * kFactor - level);
          ds = p * (weft_dot(sv + r * (kF + 1), sdy + place * (kF + 1), kF) - dots[head * kQueries + row]);
        }
        sp[r * 33 + place] = p;
        sds[r * 33 + place] = ds;
      }
      __syncwarp();
      weft_gather<kF>(to_v, sp + r * 33, sdy, c);
      weft_gather<kE>(to_k, sds + r * 33, sq, c);
    }
  }
  if (key >= kKeys) return;
  const long long head = group * kSharing;
  WEFT_HEADS
  for (int i = 0; i < (kE + 7) / 8; ++i)
    if (c + 8 * i < kE) dk[at_dk + key * kDK + c + 8 * i] = T(to_k[i] * kFactor);
  for (int i = 0; i < (kF + 7) / 8; ++i)
    if (c + 8 * i < kF) dv[at_dv + key * kDV + c + 8 * i] = T(to_v[i]);
}
)";

}  // namespace

std::string_view plain_tiles_text() { return kPlain; }
std::string_view plain_forward_text() { return kPlainForward; }
std::string_view plain_gradient_text() { return kPlainBack; }

}  // namespace weft::device::cuda
