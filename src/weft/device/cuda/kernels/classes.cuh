// classes.cuh -- rows of classes with any alignment: elements before and after the aligned 16-byte
// groups are handled one by one.
#pragma once
#include "preamble/prelude.cuh"

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) weft_stretch {
  T x[kCount];
};
template <class T, class F, class G>
__device__ __forceinline__ void weft_row(const T* x, int n, F stretch, G single) {
  constexpr int kCount = 16 / sizeof(T);
  int head = int(((16 - (reinterpret_cast<unsigned long long>(x) & 15)) & 15) / sizeof(T));
  if (head > n) head = n;
  if (threadIdx.x < head) single(int(threadIdx.x));
  const int whole = (n - head) / kCount;
#pragma unroll 4
  for (int p = threadIdx.x; p < whole; p += 256) stretch(head + p * kCount);
  for (int j = head + whole * kCount + threadIdx.x; j < n; j += 256) single(j);
}
// to[j] = f(from[j]), where both have the same alignment. Several groups are read before any is
// written, since the compiler cannot know that the two do not overlap.
template <int kCount, class T, class U, class F>
__device__ __forceinline__ void weft_map(const T* from, U* to, int n, F f) {
  typedef weft_stretch<T, kCount> In;
  typedef weft_stretch<U, kCount> Out;
  constexpr int kAtOnce = 4;
  int head = int(((16 - (reinterpret_cast<unsigned long long>(to) & 15)) & 15) / sizeof(U));
  if (head > n) head = n;
  if (threadIdx.x < head) to[threadIdx.x] = f(float(from[threadIdx.x]));
  const int whole = (n - head) / kCount;
  const In* const in = reinterpret_cast<const In*>(from + head);
  Out* const out = reinterpret_cast<Out*>(to + head);
  const auto made = [&](const In& some) {
    Out all;
#pragma unroll
    for (int u = 0; u < kCount; ++u) all.x[u] = f(float(some.x[u]));
    return all;
  };
  int p = threadIdx.x;
  for (; p + (kAtOnce - 1) * 256 < whole; p += kAtOnce * 256) {
    In some[kAtOnce];
#pragma unroll
    for (int v = 0; v < kAtOnce; ++v) some[v] = in[p + v * 256];
#pragma unroll
    for (int v = 0; v < kAtOnce; ++v) out[p + v * 256] = made(some[v]);
  }
  for (; p < whole; p += 256) out[p] = made(in[p]);
  for (int j = head + whole * kCount + threadIdx.x; j < n; j += 256) to[j] = f(float(from[j]));
}
// Online softmax: weft_sum has the largest value so far and the sum of exp(x - largest).
__device__ __forceinline__ float weft_exp(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
  return y;
}
struct weft_sum {
  float largest = -WEFT_INFINITY, total = 0.0f, whole = 0.0f;
  template <class T, int kCount>
  __device__ __forceinline__ void add(const weft_stretch<T, kCount>& some) {
    float most = largest;
#pragma unroll
    for (int u = 0; u < kCount; ++u) most = fmaxf(most, float(some.x[u]));
    const float shift = most == -WEFT_INFINITY ? 0.0f : most;
    total *= weft_exp(largest - shift);
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      total += weft_exp(float(some.x[u]) - shift);
      whole += float(some.x[u]);
    }
    largest = most;
  }
  // Combines over the block; `largest` is then finite, so that it can be subtracted.
  __device__ __forceinline__ void over_row() {
    const float most = weft_over_row<256>(largest, -WEFT_INFINITY, weft_join_max());
    const float shift = most == -WEFT_INFINITY ? 0.0f : most;
    total = weft_over_row<256>(total * weft_exp(largest - shift), 0.0f, weft_join_sum());
    largest = shift;
  }
};
