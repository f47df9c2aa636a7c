#include "weft/device/cuda/attention_kernels.h"

namespace weft::device::cuda {
namespace {

constexpr std::string_view kTensor = R"(
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
)";

// Scores of a row so far: their largest and the sum of their exponentials. Each warp has kTall times 16 queries.
constexpr std::string_view kTensorForward = R"(
extern "C" __global__ __launch_bounds__(kThreads) void weft_attend(const T* q, const T* k, const T* v, WEFT_MASK T* y, float* log_sum) {
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
)";

constexpr std::string_view kTensorBack = R"(
extern "C" __global__ __launch_bounds__(kThreadsQ) void weft_queries_back(
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

extern "C" __global__ __launch_bounds__(kThreadsK) void weft_keys_back(
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
)";

}  // namespace

std::string_view tensor_tiles_text() { return kTensor; }
std::string_view tensor_forward_text() { return kTensorForward; }
std::string_view tensor_gradient_text() { return kTensorBack; }

}  // namespace weft::device::cuda
