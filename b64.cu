
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

extern "C" __global__ void __launch_bounds__(256) weft_dots(const T* y, const T* dy, float* dots) {
  const long long i = (long long)blockIdx.x * 8 + threadIdx.x / 32;
  if (i >= (long long)kHeads * kQueries) return;
  const long long head = i / kQueries, row = i % kQueries;
  WEFT_HEADS
  float sum = 0.0f;
  for (int f = threadIdx.x % 32; f < kF; f += 32) sum += float(y[at_y + row * kY + f]) * float(dy[at_dy + row * kDY + f]);
  sum = weft_over_warp(sum, weft_join_sum());
  if (threadIdx.x % 32 == 0) dots[i] = sum;
}
// The log-sum of a row as exp2 wants it; nothing is seen from one that is no row or saw nothing.
__device__ __forceinline__ float weft_level(const float* log_sum, int row) {
  if (row >= kQueries) return WEFT_INFINITY;
  const float x = log_sum[row * kSum];
  return x == -WEFT_INFINITY ? WEFT_INFINITY : x * 1.4426950408889634f;
}
constexpr int kThreadsQ=256,kMQ=128,kNQ=64,kThreadsK=256,kMK=64,kNK=128;

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

extern "C" __global__ void __launch_bounds__(kThreadsQ) weft_queries_back(
    const T* q, const T* k, const T* v, const float* log_sum, const T* dy, WEFT_MASK const float* dots, T* dq) {
  extern __shared__ __align__(16) unsigned char weft_room[];
  T* const sk = reinterpret_cast<T*>(weft_room);
  T* const sv = sk + 2 * kNQ * (kEP + 8);
  T* const sq = sv + 2 * kNQ * (kFP + 8);
  T* const sdy = sq + kMQ * (kEP + 8);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int kTiles = (kQueries + kMQ - 1) / kMQ;
  const long long head = blockIdx.x % kHeads;
  const int q0 = (kTiles - 1 - int(blockIdx.x / kHeads)) * kMQ;
  WEFT_HEADS
  const int last = q0 + kMQ < kQueries ? q0 + kMQ - 1 : kQueries - 1;
  const int end = weft_end(last);
  int t = weft_first(q0) / kNQ * kNQ;
  weft_load<kMQ, kE, kEP, kThreadsQ>(sq, q + at_q, kQ, q0, kQueries);
  weft_load<kMQ, kF, kFP, kThreadsQ>(sdy, dy + at_dy, kDY, q0, kQueries);
  weft_commit();
  if (t < end) {
    weft_load<kNQ, kE, kEP, kThreadsQ>(sk, k + at_k, kK, t, kKeys);
    weft_load<kNQ, kF, kFP, kThreadsQ>(sv, v + at_v, kV, t, kKeys);
  }
  weft_commit();
  weft_wait<1>();
  __syncthreads();
  unsigned aq[kEP / 16][4], ady[kFP / 16][4];
  #pragma unroll
  for (int i = 0; i < kEP / 16; ++i) weft_ld4(aq[i], weft_rows16(sq, lane, warp * 16, i * 16, kEP));
  #pragma unroll
  for (int i = 0; i < kFP / 16; ++i) weft_ld4(ady[i], weft_rows16(sdy, lane, warp * 16, i * 16, kFP));
  const int mine = q0 + warp * 16;
  float level[2], dot[2], to[kEP / 8][4];
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = mine + h * 8 + lane / 4;
    level[h] = weft_level(log_sum + at_sum, row);
    dot[h] = row < kQueries ? dots[head * kQueries + row] : 0.0f;
  }
  #pragma unroll
  for (int j = 0; j < kEP / 8; ++j) to[j][0] = to[j][1] = to[j][2] = to[j][3] = 0.0f;
  for (int stage = 0; t < end; t += kNQ, stage ^= 1) {
    if (t + kNQ < end) {
      weft_load<kNQ, kE, kEP, kThreadsQ>(sk + (stage ^ 1) * kNQ * (kEP + 8), k + at_k, kK, t + kNQ, kKeys);
      weft_load<kNQ, kF, kFP, kThreadsQ>(sv + (stage ^ 1) * kNQ * (kFP + 8), v + at_v, kV, t + kNQ, kKeys);
      weft_commit();
      weft_wait<1>();
    } else {
      weft_wait<0>();
    }
    __syncthreads();
    const T* const keys = sk + stage * kNQ * (kEP + 8);
    const T* const values = sv + stage * kNQ * (kFP + 8);
    float s[kNQ / 8][4], ds[kNQ / 8][4];
    #pragma unroll
    for (int j = 0; j < kNQ / 8; ++j)
      #pragma unroll
      for (int i = 0; i < 4; ++i) s[j][i] = ds[j][i] = 0.0f;
    weft_products<kNQ, kEP>(s, aq, keys, lane);
    weft_products<kNQ, kFP>(ds, ady, values, lane);
    const bool edge = kMasked || t + kNQ > weft_end(mine) || t < weft_first(mine + 15);
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = mine + h * 8 + lane / 4;
      const int low = weft_first(row), high = weft_end(row);
      #pragma unroll
      for (int j = 0; j < kNQ / 8; ++j)
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          float p = weft_exp2(s[j][2 * h + u] * (kFactorLeft * kTwice) - level[h]);
          if (edge) {
            const int key = t + j * 8 + lane % 4 * 2 + u;
            bool seen = key >= low && key < high;
            if (kMasked) seen = seen && row < kQueries && WEFT_SEEN;
            if (!seen) p = 0.0f;
          }
          ds[j][2 * h + u] = p * (ds[j][2 * h + u] - dot[h]);
        }
    }
    weft_gather<kNQ, kEP>(to, ds, keys, lane);
    __syncthreads();
  }
  weft_wait<0>();
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = mine + h * 8 + lane / 4;
    if (row >= kQueries) continue;
    #pragma unroll
    for (int j = 0; j < kEP / 8; ++j)
      weft_store2(dq + at_dq + row * kDQ, j * 8 + lane % 4 * 2, kE, to[j][2 * h] * kFactor, to[j][2 * h + 1] * kFactor);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsK) weft_keys_back(
    const T* q, const T* k, const T* v, const float* log_sum, const T* dy, WEFT_MASK const float* dots, T* dk, T* dv) {
  extern __shared__ __align__(16) unsigned char weft_room[];
  T* const sq = reinterpret_cast<T*>(weft_room);
  T* const sdy = sq + 2 * kMK * (kEP + 8);
  T* const sk = sdy + 2 * kMK * (kFP + 8);
  T* const sv = sk + kNK * (kEP + 8);
  float* const levels = reinterpret_cast<float*>(sv + kNK * (kFP + 8));
  float* const dotted = levels + 2 * kMK;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int kApart = kHeads / kSharing;
  const int k0 = int(blockIdx.x / kApart) * kNK;
  const long long group = blockIdx.x % kApart;
  // Queries that may see a key of the tile.
  const int after = k0 + kNK < kKeys ? k0 + kNK : kKeys;
  long long low = kCausal ? k0 - kBegin : 0, high = kWindowed ? after - 1 + kReach - kBegin : kQueries;
  if (low < 0) low = 0;
  if (high > kQueries) high = kQueries;
  const int first = int(low / kMK * kMK);
  const int tiles = high > first ? int((high - first + kMK - 1) / kMK) : 0;
  const auto load = [&](int turn, int stage) {
    const long long head = group * kSharing + turn / tiles;
    WEFT_HEADS
    const int q0 = first + turn % tiles * kMK;
    weft_load<kMK, kE, kEP, kThreadsK>(sq + stage * kMK * (kEP + 8), q + at_q, kQ, q0, kQueries);
    weft_load<kMK, kF, kFP, kThreadsK>(sdy + stage * kMK * (kFP + 8), dy + at_dy, kDY, q0, kQueries);
    if (threadIdx.x < kMK) {
      const int row = q0 + threadIdx.x;
      levels[stage * kMK + threadIdx.x] = weft_level(log_sum + at_sum, row);
      dotted[stage * kMK + threadIdx.x] = row < kQueries ? dots[head * kQueries + row] : 0.0f;
    }
  };
  {
    const long long head = group * kSharing;
    WEFT_HEADS
    weft_load<kNK, kE, kEP, kThreadsK>(sk, k + at_k, kK, k0, kKeys);
    weft_load<kNK, kF, kFP, kThreadsK>(sv, v + at_v, kV, k0, kKeys);
  }
  weft_commit();
  const int turns = tiles * kSharing;
  if (turns > 0) load(0, 0);
  weft_commit();
  weft_wait<1>();
  __syncthreads();
  unsigned ak[kEP / 16][4], av[kFP / 16][4];
  #pragma unroll
  for (int i = 0; i < kEP / 16; ++i) weft_ld4(ak[i], weft_rows16(sk, lane, warp * 16, i * 16, kEP));
  #pragma unroll
  for (int i = 0; i < kFP / 16; ++i) weft_ld4(av[i], weft_rows16(sv, lane, warp * 16, i * 16, kFP));
  float to_k[kEP / 8][4], to_v[kFP / 8][4];
  #pragma unroll
  for (int j = 0; j < kEP / 8; ++j) to_k[j][0] = to_k[j][1] = to_k[j][2] = to_k[j][3] = 0.0f;
  #pragma unroll
  for (int j = 0; j < kFP / 8; ++j) to_v[j][0] = to_v[j][1] = to_v[j][2] = to_v[j][3] = 0.0f;
  const int mine = k0 + warp * 16;
  for (int turn = 0; turn < turns; ++turn) {
    const int stage = turn % 2;
    if (turn + 1 < turns) {
      load(turn + 1, stage ^ 1);
      weft_commit();
      weft_wait<1>();
    } else {
      weft_wait<0>();
    }
    __syncthreads();
    const T* const queries = sq + stage * kMK * (kEP + 8);
    const T* const back = sdy + stage * kMK * (kFP + 8);
    const int q0 = first + turn % tiles * kMK;
    const long long head = group * kSharing + turn / tiles;
    float s[kMK / 8][4], ds[kMK / 8][4];
    #pragma unroll
    for (int j = 0; j < kMK / 8; ++j)
      #pragma unroll
      for (int i = 0; i < 4; ++i) s[j][i] = ds[j][i] = 0.0f;
    weft_products<kMK, kEP>(s, ak, queries, lane);
    const bool edge = kMasked || mine + 16 > weft_end(q0) || mine < weft_first(q0 + kMK - 1);
    #pragma unroll
    for (int j = 0; j < kMK / 8; ++j)
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = j * 8 + lane % 4 * 2 + i % 2;
        float p = weft_exp2(s[j][i] * (kFactorLeft * kTwice) - levels[stage * kMK + at]);
        if (edge) {
          const int row = q0 + at, key = mine + i / 2 * 8 + lane / 4;
          bool seen = key >= weft_first(row) && key < weft_end(row);
          if (kMasked && seen && row < kQueries) {
            WEFT_HEADS
            seen = WEFT_SEEN;
          }
          if (!seen) p = 0.0f;
        }
        s[j][i] = p;
      }
    weft_gather<kMK, kFP>(to_v, s, back, lane);
    weft_products<kMK, kFP>(ds, av, back, lane);
    #pragma unroll
    for (int j = 0; j < kMK / 8; ++j)
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        ds[j][i] = s[j][i] * (ds[j][i] - dotted[stage * kMK + j * 8 + lane % 4 * 2 + i % 2]);
    weft_gather<kMK, kEP>(to_k, ds, queries, lane);
    __syncthreads();
  }
  weft_wait<0>();
  const long long head = group * kSharing;
  WEFT_HEADS
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int key = mine + h * 8 + lane / 4;
    if (key >= kKeys) continue;
    #pragma unroll
    for (int j = 0; j < kEP / 8; ++j)
      weft_store2(dk + at_dk + key * kDK, j * 8 + lane % 4 * 2, kE, to_k[j][2 * h] * kFactor, to_k[j][2 * h + 1] * kFactor);
    #pragma unroll
    for (int j = 0; j < kFP / 8; ++j)
      weft_store2(dv + at_dv + key * kDV, j * 8 + lane % 4 * 2, kF, to_v[j][2 * h], to_v[j][2 * h + 1]);
  }
}
