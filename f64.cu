
#define WEFT_INFINITY __int_as_float(0x7f800000)
// Narrow numbers in memory: whatever is computed with them is f32, and rounded to the nearest when it is stored.
struct weft_bf16 {
  unsigned short bits;
  weft_bf16() = default;
  __device__ __forceinline__ weft_bf16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ __forceinline__ operator float() const { return __uint_as_float(unsigned(bits) << 16); }
};
struct weft_f16 {
  unsigned short bits;
  weft_f16() = default;
  __device__ __forceinline__ weft_f16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ __forceinline__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
__device__ __forceinline__ float weft_max(float a, float b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ float weft_min(float a, float b) { return a < b || a != a ? a : b; }
__device__ __forceinline__ float weft_add(float a, float b) { return a + b; }
__device__ __forceinline__ float weft_sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return x < 0.0f ? e / (1.0f + e) : 1.0f / (1.0f + e);
}
__device__ __forceinline__ float weft_normal_below(float x) { return 0.5f * (1.0f + erff(x * 0.70710678118654752f)); }
__device__ __forceinline__ float weft_normal_density(float x) { return 0.39894228040143268f * expf(-0.5f * x * x); }
__device__ __forceinline__ float weft_tanh_of_cubic(float x) {
  return tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x));
}
__device__ __forceinline__ float weft_gelu_tanh_slope(float x) {
  const float t = weft_tanh_of_cubic(x);
  const float inner = 0.79788456080286536f * (1.0f + 3.0f * 0.044715f * x * x);
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner;
}
__device__ __forceinline__ float weft_silu_slope(float x) {
  const float s = weft_sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}
// Every thread of a row gets the whole of what each had a part of, in one order.
template <class F>
__device__ __forceinline__ float weft_over_warp(float x, F join) {
  for (int lane = 16; lane > 0; lane /= 2) x = join(x, __shfl_xor_sync(0xffffffffu, x, lane));
  return x;
}
template <int kThreads, class F>
__device__ __forceinline__ float weft_over_row(float x, float identity, F join) {
  x = weft_over_warp(x, join);
  if (kThreads <= 32) return x;
  __shared__ float parts[32];
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = threadIdx.x % 32 < kThreads / 32 ? parts[threadIdx.x % 32] : identity;
  return weft_over_warp(x, join);
}
struct weft_join_sum { __device__ float operator()(float a, float b) const { return a + b; } };
struct weft_join_max { __device__ float operator()(float a, float b) const { return weft_max(a, b); } };
struct weft_join_min { __device__ float operator()(float a, float b) const { return weft_min(a, b); } };
typedef weft_bf16 T;
#define WEFT_T "bf16"
#define WEFT_MASK
#define WEFT_SEEN true
#define WEFT_HEADS long long at_q=0,at_k=0,at_v=0,at_y=0,at_sum=0,at_dy=0,at_dq=0,at_dk=0,at_dv=0; { long long n=head%12, b=head/12; at_q=at_y=at_dy=at_dq=b*786432ll+n*64; at_k=at_v=at_dk=at_dv=at_q; at_sum=head*1024; }
constexpr int kQueries=1024,kKeys=1024,kE=64,kF=64,kEP=64,kFP=64,kHeads=192,kSharing=1;
constexpr bool kCausal=true,kWindowed=false,kMasked=false,kAligned=true;
constexpr long long kBegin=0,kReach=0;
constexpr float kFactor=0.125f,kTwice=0.125f*1.4426950408889634f,kFactorLeft=1.0f;
constexpr long long kQ=768,kK=768,kV=768,kY=768,kSum=1,kDY=768,kDQ=768,kDK=768,kDV=768;

__device__ __forceinline__ int weft_clamp(long long x) {
  return x < 0 ? 0 : x > kKeys ? kKeys : int(x);
}
// Query s sees the keys [weft_first(s), weft_end(s)), but for the mask.
__device__ __forceinline__ int weft_first(long long s) { return kWindowed ? weft_clamp(kBegin + s + 1 - kReach) : 0; }
__device__ __forceinline__ int weft_end(long long s) { return kCausal ? weft_clamp(kBegin + s + 1) : kKeys; }
// Scores are kept so that exp2 gives what exp would: kTwice is the factor that is left to apply.
__device__ __forceinline__ float weft_exp2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
constexpr int kThreads=128,kM=128,kN=64,kTall=2;

__device__ __forceinline__ unsigned weft_at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void weft_ld4(unsigned (&r)[4], const T* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(weft_at(p)));
}
__device__ __forceinline__ void weft_ld4_turned(unsigned (&r)[4], const T* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(weft_at(p)));
}
__device__ __forceinline__ void weft_mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." WEFT_T "." WEFT_T ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
               "{%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned weft_two(float low, float high) {
  unsigned both;
  asm("cvt.rn." WEFT_T "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
// Two tiles of results as the left factor of the next product.
__device__ __forceinline__ void weft_left(unsigned (&a)[4], const float (&x)[4], const float (&y)[4]) {
  a[0] = weft_two(x[0], x[1]);
  a[1] = weft_two(x[2], x[3]);
  a[2] = weft_two(y[0], y[1]);
  a[3] = weft_two(y[2], y[3]);
}
__device__ __forceinline__ void weft_commit() { asm volatile("cp.async.commit_group;"); }
template <int kLeft> __device__ __forceinline__ void weft_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(kLeft)); }

// Rows of a tile lie kPadded + 8 apart, so that the eight that are read at once meet in no bank; what lies outside is 0.
template <int kRows, int kWide, int kPadded, int kThreads>
__device__ __forceinline__ void weft_load(T* to, const T* from, long long step, int first, int limit) {
  constexpr int kChunks = kPadded / 8;
  for (int i = threadIdx.x; i < kRows * kChunks; i += kThreads) {
    const int r = i / kChunks, c = i % kChunks * 8;
    T* const at = to + r * (kPadded + 8) + c;
    const bool inside = first + r < limit;
    const T* const source = from + (inside ? (first + r) * step : 0);
    if (kAligned) {
      const int bytes = inside && c < kWide ? 16 : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(weft_at(at)), "l"(source + (c < kWide ? c : 0)), "r"(bytes));
    } else {
      for (int u = 0; u < 8; ++u) at[u] = inside && c + u < kWide ? source[c + u] : T(0.0f);
    }
  }
}
// Rows of 16 x 16 of a tile as the left factor; keys as the right one; and a tile whose rows are summed over.
__device__ __forceinline__ const T* weft_rows16(const T* tile, int lane, int row, int column, int width) {
  return tile + (row + lane % 16) * (width + 8) + column + lane / 16 * 8;
}
__device__ __forceinline__ const T* weft_keys16(const T* tile, int lane, int row, int column, int width) {
  return tile + (row + lane / 16 * 8 + lane % 8) * (width + 8) + column + lane / 8 % 2 * 8;
}
__device__ __forceinline__ void weft_store2(T* to, int column, int width, float x, float y) {
  if (kAligned && column + 1 < width) {
    *reinterpret_cast<unsigned*>(to + column) = weft_two(x, y);
  } else {
    if (column < width) to[column] = T(x);
    if (column + 1 < width) to[column + 1] = T(y);
  }
}
// A tile of products: 16 rows that are held (or lie in `rows`) by kN rows of `keys`.
template <int kN, int kP>
__device__ __forceinline__ void weft_products(float (&s)[kN / 8][4], const unsigned (&a)[kP / 16][4], const T* keys, int lane) {
  #pragma unroll
  for (int i = 0; i < kP / 16; ++i)
    #pragma unroll
    for (int j = 0; j < kN / 16; ++j) {
      unsigned b[4];
      weft_ld4(b, weft_keys16(keys, lane, j * 16, i * 16, kP));
      weft_mma(s[2 * j], a[i], b[0], b[1]);
      weft_mma(s[2 * j + 1], a[i], b[2], b[3]);
    }
}
// to[16 x kP] += x[16 x kN] rows[kN x kP]
template <int kN, int kP>
__device__ __forceinline__ void weft_gather(float (&to)[kP / 8][4], const float (&x)[kN / 8][4], const T* rows, int lane) {
  #pragma unroll
  for (int i = 0; i < kN / 16; ++i) {
    unsigned a[4];
    weft_left(a, x[2 * i], x[2 * i + 1]);
    #pragma unroll
    for (int j = 0; j < kP / 16; ++j) {
      unsigned b[4];
      weft_ld4_turned(b, weft_rows16(rows, lane, i * 16, j * 16, kP));
      weft_mma(to[2 * j], a, b[0], b[1]);
      weft_mma(to[2 * j + 1], a, b[2], b[3]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) weft_attend(const T* q, const T* k, const T* v, WEFT_MASK T* y, float* log_sum) {
  extern __shared__ __align__(16) unsigned char weft_room[];
  T* const sq = reinterpret_cast<T*>(weft_room);
  T* const sk = sq + kM * (kEP + 8);
  T* const sv = sk + 2 * kN * (kEP + 8);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int kTiles = (kQueries + kM - 1) / kM;
  const long long head = blockIdx.x % kHeads;
  const int q0 = (kTiles - 1 - int(blockIdx.x / kHeads)) * kM;
  WEFT_HEADS
  const int last = q0 + kM < kQueries ? q0 + kM - 1 : kQueries - 1;
  const int end = weft_end(last);
  int t = weft_first(q0) / kN * kN;
  weft_load<kM, kE, kEP, kThreads>(sq, q + at_q, kQ, q0, kQueries);
  if (t < end) {
    weft_load<kN, kE, kEP, kThreads>(sk, k + at_k, kK, t, kKeys);
    weft_load<kN, kF, kFP, kThreads>(sv, v + at_v, kV, t, kKeys);
  }
  weft_commit();
  float o[kTall][kFP / 8][4], most[kTall][2], total[kTall][2];
  #pragma unroll
  for (int m = 0; m < kTall; ++m) {
    most[m][0] = most[m][1] = -WEFT_INFINITY;
    total[m][0] = total[m][1] = 0.0f;
    #pragma unroll
    for (int j = 0; j < kFP / 8; ++j) o[m][j][0] = o[m][j][1] = o[m][j][2] = o[m][j][3] = 0.0f;
  }
  const int mine = q0 + warp * 16 * kTall;
  for (int stage = 0; t < end; t += kN, stage ^= 1) {
    if (t + kN < end) {
      weft_load<kN, kE, kEP, kThreads>(sk + (stage ^ 1) * kN * (kEP + 8), k + at_k, kK, t + kN, kKeys);
      weft_load<kN, kF, kFP, kThreads>(sv + (stage ^ 1) * kN * (kFP + 8), v + at_v, kV, t + kN, kKeys);
      weft_commit();
      weft_wait<1>();
    } else {
      weft_wait<0>();
    }
    __syncthreads();
    const T* const keys = sk + stage * kN * (kEP + 8);
    const T* const values = sv + stage * kN * (kFP + 8);
    float s[kTall][kN / 8][4];
    #pragma unroll
    for (int m = 0; m < kTall; ++m)
      #pragma unroll
      for (int j = 0; j < kN / 8; ++j) s[m][j][0] = s[m][j][1] = s[m][j][2] = s[m][j][3] = 0.0f;
    #pragma unroll
    for (int i = 0; i < kEP / 16; ++i) {
      unsigned a[kTall][4];
      #pragma unroll
      for (int m = 0; m < kTall; ++m) weft_ld4(a[m], weft_rows16(sq, lane, (warp * kTall + m) * 16, i * 16, kEP));
      #pragma unroll
      for (int j = 0; j < kN / 16; ++j) {
        unsigned b[4];
        weft_ld4(b, weft_keys16(keys, lane, j * 16, i * 16, kEP));
        #pragma unroll
        for (int m = 0; m < kTall; ++m) {
          weft_mma(s[m][2 * j], a[m], b[0], b[1]);
          weft_mma(s[m][2 * j + 1], a[m], b[2], b[3]);
        }
      }
    }
    const bool edge = kMasked || t + kN > weft_end(mine) || t < weft_first(mine + 16 * kTall - 1);
    #pragma unroll
    for (int m = 0; m < kTall; ++m) {
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = mine + m * 16 + h * 8 + lane / 4;
        if (kFactorLeft != 1.0f)
          for (int j = 0; j < kN / 8; ++j) s[m][j][2 * h] *= kFactorLeft, s[m][j][2 * h + 1] *= kFactorLeft;
        if (edge) {
          const int low = weft_first(row), high = weft_end(row);
          #pragma unroll
          for (int j = 0; j < kN / 8; ++j)
            #pragma unroll
            for (int u = 0; u < 2; ++u) {
              const int key = t + j * 8 + lane % 4 * 2 + u;
              bool seen = key >= low && key < high;
              if (kMasked) seen = seen && row < kQueries && WEFT_SEEN;
              if (!seen) s[m][j][2 * h + u] = -WEFT_INFINITY;
            }
        }
        float largest = most[m][h];
        #pragma unroll
        for (int j = 0; j < kN / 8; ++j) largest = fmaxf(largest, fmaxf(s[m][j][2 * h], s[m][j][2 * h + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        const float shift = largest == -WEFT_INFINITY ? 0.0f : largest * kTwice;
        const float smaller = weft_exp2(most[m][h] * kTwice - shift);
        most[m][h] = largest;
        float sum = 0.0f;
        #pragma unroll
        for (int j = 0; j < kN / 8; ++j) {
          s[m][j][2 * h] = weft_exp2(s[m][j][2 * h] * kTwice - shift);
          s[m][j][2 * h + 1] = weft_exp2(s[m][j][2 * h + 1] * kTwice - shift);
          sum += s[m][j][2 * h] + s[m][j][2 * h + 1];
        }
        total[m][h] = total[m][h] * smaller + sum;
        #pragma unroll
        for (int j = 0; j < kFP / 8; ++j) o[m][j][2 * h] *= smaller, o[m][j][2 * h + 1] *= smaller;
      }
    }
    #pragma unroll
    for (int i = 0; i < kN / 16; ++i) {
      unsigned a[kTall][4];
      #pragma unroll
      for (int m = 0; m < kTall; ++m) weft_left(a[m], s[m][2 * i], s[m][2 * i + 1]);
      #pragma unroll
      for (int j = 0; j < kFP / 16; ++j) {
        unsigned b[4];
        weft_ld4_turned(b, weft_rows16(values, lane, i * 16, j * 16, kFP));
        #pragma unroll
        for (int m = 0; m < kTall; ++m) {
          weft_mma(o[m][2 * j], a[m], b[0], b[1]);
          weft_mma(o[m][2 * j + 1], a[m], b[2], b[3]);
        }
      }
    }
    __syncthreads();
  }
  weft_wait<0>();
  #pragma unroll
  for (int m = 0; m < kTall; ++m)
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = total[m][h];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const int row = mine + m * 16 + h * 8 + lane / 4;
      if (row >= kQueries) continue;
      const float share = sum == 0.0f ? 0.0f : 1.0f / sum;
      T* const to = y + at_y + row * kY;
      #pragma unroll
      for (int j = 0; j < kFP / 8; ++j)
        weft_store2(to, j * 8 + lane % 4 * 2, kF, o[m][j][2 * h] * share, o[m][j][2 * h + 1] * share);
      if (lane % 4 == 0)
        log_sum[at_sum + row * kSum] = sum == 0.0f ? -WEFT_INFINITY : most[m][h] * kTwice * 0.69314718055994531f + logf(sum);
    }
}
