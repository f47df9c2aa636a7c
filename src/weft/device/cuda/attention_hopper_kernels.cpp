#include <fmt/format.h>

#include "weft/device/cuda/attention_kernels.h"

namespace weft::device::cuda {
namespace {

constexpr std::string_view kHopperTiles = R"(
struct __align__(64) weft_tensor { unsigned char bytes[128]; };  // where a tensor lies, as the copy engine wants it told
__device__ __forceinline__ unsigned weft_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Meetings: so many arrive and so many bytes come in, then the next round begins. Who waits knows the round's parity.
__device__ __forceinline__ void weft_begin(unsigned meeting, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(meeting), "r"(count) : "memory");
}
__device__ __forceinline__ void weft_begun() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void weft_expect(unsigned meeting, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(meeting), "r"(bytes) : "memory");
}
__device__ __forceinline__ void weft_arrive(unsigned meeting) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(meeting) : "memory");
}
__device__ __forceinline__ void weft_await(unsigned meeting, unsigned parity) {
  asm volatile("{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n@!over bra again;\n}"
               ::"r"(meeting), "r"(parity) : "memory");
}
// A box of a tensor, 64 columns wide; what lies outside the tensor is 0. And a stretch of numbers.
__device__ __forceinline__ void weft_fetch(unsigned to, const weft_tensor& from, unsigned meeting, int column, int row, int a, int b, int c) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
               ::"r"(to), "l"(&from), "r"(meeting), "r"(column), "r"(row), "r"(a), "r"(b), "r"(c) : "memory");
}
__device__ __forceinline__ void weft_fetch_row(unsigned to, const float* from, int bytes, unsigned meeting) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(to), "l"(from), "r"(bytes), "r"(meeting) : "memory");
}
// What plain stores wrote into shared memory is there for products and copies from now on.
__device__ __forceinline__ void weft_shown() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// A tile for products: rows of 128 bytes whose pieces of 16 are permuted by the row's number modulo 8, as weft_fetch lays
// them. Wider tiles are several such, `apart` bytes from each other.
__device__ __forceinline__ unsigned long long weft_tile(unsigned at, unsigned apart) {
  return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(apart >> 4) << 16 | 64ull << 32 | 1ull << 62;
}
__device__ __forceinline__ unsigned weft_permuted(unsigned tile, int row, int piece) { return tile + row * 128 + (piece ^ (row & 7)) * 16; }
// Products run on while other things are computed: those between open and close are waited for together.
__device__ __forceinline__ void weft_open() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void weft_close() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kLeft> __device__ __forceinline__ void weft_done() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory"); }
// Results are read after this and not before: the compiler knows of no other reason to wait.
template <int n> __device__ __forceinline__ void weft_hold(float (&x)[n]) {
  #pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(x[i])::"memory");
}
__device__ __forceinline__ unsigned weft_two(float low, float high) {
  unsigned both;
  asm("cvt.rn." WEFT_T "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
// A thread has two neighbours of every eight of a row: four threads exchange them, so that each writes eight at once.
template <int kWide>
__device__ __forceinline__ void weft_store_row(T* to, const float* x, float factor, int lane, int width) {
  const int me = lane % 4;
  #pragma unroll
  for (int j = 0; j < kWide / 8; j += 4) {
    unsigned w[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = j + i < kWide / 8 ? weft_two(x[4 * (j + i)] * factor, x[4 * (j + i) + 1] * factor) : 0u;
    #pragma unroll
    for (int far = 1; far < 4; far *= 2)
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        if (!(i & far)) {
          const unsigned given = me & far ? w[i] : w[i | far];
          const unsigned got = __shfl_xor_sync(0xffffffffu, given, far);
          if (me & far) w[i] = got; else w[i | far] = got;
        }
    const int column = (j + me) * 8;
    if (column < width) *reinterpret_cast<uint4*>(to + column) = make_uint4(w[0], w[1], w[2], w[3]);
  }
}
)";

// Blocks go on from tile to tile of queries. One thread fetches; each team of four warps has 64 queries, and multiplies
// the next keys while the softmax of those before goes on.
constexpr std::string_view kHopperForward = R"(
// The tile of queries that is this block's in a turn. Where some see more than others heavy ones come first, and each second
// turn goes the other way, so that blocks get the same work in all; else those of a head come together, so that its keys
// stay near. False when no turn is left, head -1 where this block has nothing in it.
__device__ __forceinline__ bool weft_item(int turn, int& head, int& q0) {
  constexpr int kTiles = (kQueries + kM - 1) / kM;
  constexpr long long kItems = (long long)kTiles * kHeads;
  if ((long long)turn * gridDim.x >= kItems) return false;
  const long long item = (long long)turn * gridDim.x + (turn % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  constexpr bool kHeavy = kCausal && !kWindowed;
  head = item >= kItems ? -1 : int(kHeavy ? item % kHeads : item / kTiles);
  q0 = (kTiles - 1 - int(kHeavy ? item / kHeads : item % kTiles)) * kM;
  return true;
}
extern "C" __global__ __launch_bounds__(kThreads, 1) void weft_attend_hopper(
    const __grid_constant__ weft_tensor map_q, const __grid_constant__ weft_tensor map_k, const __grid_constant__ weft_tensor map_v,
    WEFT_MASK T* y, float* log_sum) {
  extern __shared__ __align__(1024) unsigned char weft_room[];
  constexpr int kSizeQ = kM * kEC * 128, kSizeK = kN * kEC * 128, kSizeV = kN * kFC * 128;
  const unsigned sq = weft_shared(weft_room), sk = sq + kSizeQ, sv = sk + kStages * kSizeK, bars = sv + kStages * kSizeV;
  const unsigned q_full = bars, q_empty = bars + 8, k_full = bars + 16, k_empty = k_full + 8 * kStages, v_full = k_empty + 8 * kStages,
                 v_empty = v_full + 8 * kStages;
  const int team = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    weft_begin(q_full, 1);
    weft_begin(q_empty, kTeams);
    for (int i = 0; i < kStages; ++i) {
      weft_begin(k_full + 8 * i, 1);
      weft_begin(v_full + 8 * i, 1);
      weft_begin(k_empty + 8 * i, kTeams);
      weft_begin(v_empty + 8 * i, kTeams);
    }
    weft_begun();
  }
  __syncthreads();
  int stage = 0;
  unsigned round = 0;
  if (team == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kFewRegisters));
    if (threadIdx.x == 0) {
      int head, q0;
      for (int turn = 0; weft_item(turn, head, q0); ++turn) {
        if (head < 0) continue;
        WEFT_CORNERS
        const int last = q0 + kM < kQueries ? q0 + kM - 1 : kQueries - 1;
        const int end = weft_end(last);
        weft_await(q_empty, (turn & 1) ^ 1);
        weft_expect(q_full, kSizeQ);
        #pragma unroll
        for (int c = 0; c < kEC; ++c) weft_fetch(sq + c * kM * 128, map_q, q_full, c * 64, q0, q_1, q_2, q_3);
        for (int t = weft_first(q0) / kN * kN; t < end; t += kN) {
          weft_await(k_empty + 8 * stage, round ^ 1);
          weft_expect(k_full + 8 * stage, kSizeK);
          #pragma unroll
          for (int c = 0; c < kEC; ++c)
            weft_fetch(sk + stage * kSizeK + c * kN * 128, map_k, k_full + 8 * stage, c * 64, t, k_1, k_2, k_3);
          weft_await(v_empty + 8 * stage, round ^ 1);
          weft_expect(v_full + 8 * stage, kSizeV);
          #pragma unroll
          for (int c = 0; c < kFC; ++c)
            weft_fetch(sv + stage * kSizeV + c * kN * 128, map_v, v_full + 8 * stage, c * 64, t, v_1, v_2, v_3);
          if (++stage == kStages) stage = 0, round ^= 1;
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kManyRegisters));
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const bool speaks = threadIdx.x % 128 == 0;
    int head, q0;
    for (int turn = 0; weft_item(turn, head, q0); ++turn) {
      if (head < 0) continue;
      const int mine = q0 + (team - 1) * 64;
      const int last = q0 + kM < kQueries ? q0 + kM - 1 : kQueries - 1;
      const int end = weft_end(last);
      int t = weft_first(q0) / kN * kN;
      const int end_mine = weft_end(mine + 63 < kQueries ? mine + 63 : kQueries - 1);
      float o[kFP / 2], s[kN / 2], most[2], total[2];
      unsigned p[kN / 4];
      #pragma unroll
      for (int j = 0; j < kFP / 2; ++j) o[j] = 0.0f;
      most[0] = most[1] = -WEFT_INFINITY;
      total[0] = total[1] = 0.0f;
      const auto products = [&](int at) {
        weft_open();
        #pragma unroll
        for (int i = 0; i < kEP / 16; ++i)
          weft_multiply<0, 0>(s, weft_tile(sq + i / 4 * kM * 128 + (team - 1) * 8192 + i % 4 * 32, 16),
                            weft_tile(sk + at * kSizeK + i / 4 * kN * 128 + i % 4 * 32, 16), i > 0);
        weft_close();
      };
      const auto gather = [&](int at) {
        weft_open();
        #pragma unroll
        for (int i = 0; i < kN / 16; ++i) weft_multiply_held<1>(o, p + 4 * i, weft_tile(sv + at * kSizeV + i * 2048, kN * 128));
        weft_close();
      };
      // Scores become their exponentials; what was gathered so far counts `smaller` times.
      const auto soften = [&](float (&smaller)[2]) {
        const bool edge = kMasked || t + kN > weft_end(mine) || t < weft_first(mine + 63);
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = mine + warp * 16 + h * 8 + lane / 4;
          if (kFactorLeft != 1.0f)
            for (int j = 0; j < kN / 8; ++j) s[4 * j + 2 * h] *= kFactorLeft, s[4 * j + 2 * h + 1] *= kFactorLeft;
          if (edge) {
            const int low = weft_first(row) - t - lane % 4 * 2, high = weft_end(row) - t - lane % 4 * 2;
            const unsigned char* seen = nullptr;
            if (kMasked) {
              WEFT_HEADS
              seen = WEFT_MASK_AT(row < kQueries ? row : 0, t + lane % 4 * 2);
            }
            #pragma unroll
            for (int j = 0; j < kN / 8; ++j)
              #pragma unroll
              for (int u = 0; u < 2; ++u)
                if ((kWindowed && j * 8 + u < low) || j * 8 + u >= high || (kMasked && seen[(j * 8 + u) * kMaskK] == 0)) s[4 * j + 2 * h + u] = -WEFT_INFINITY;
          }
          float largest = fmaxf(most[h], s[2 * h]), other = s[2 * h + 1];
          #pragma unroll
          for (int j = 1; j < kN / 8; ++j) largest = fmaxf(largest, s[4 * j + 2 * h]), other = fmaxf(other, s[4 * j + 2 * h + 1]);
          largest = fmaxf(largest, other);
          largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
          largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
          const float shift = largest == -WEFT_INFINITY ? 0.0f : largest * kTwice;
          smaller[h] = weft_exp2(most[h] * kTwice - shift);
          most[h] = largest;
          float sum = 0.0f, more = 0.0f;
          #pragma unroll
          for (int j = 0; j < kN / 8; ++j) {
            s[4 * j + 2 * h] = weft_exp2(s[4 * j + 2 * h] * kTwice - shift);
            s[4 * j + 2 * h + 1] = weft_exp2(s[4 * j + 2 * h + 1] * kTwice - shift);
            sum += s[4 * j + 2 * h];
            more += s[4 * j + 2 * h + 1];
          }
          total[h] = total[h] * smaller[h] + (sum + more);
        }
      };
      const auto pack = [&]() {
        #pragma unroll
        for (int j = 0; j < kN / 4; ++j) p[j] = weft_two(s[2 * j], s[2 * j + 1]);
      };
      weft_await(q_full, turn & 1);
      if (t < end_mine) {
        float smaller[2];
        weft_await(k_full + 8 * stage, round);
        products(stage);
        weft_done<0>();
        weft_hold(s);
        if (speaks) weft_arrive(k_empty + 8 * stage);
        soften(smaller);
        pack();
        for (t += kN; t < end_mine; t += kN) {
          const int before = stage;
          const unsigned earlier = round;
          if (++stage == kStages) stage = 0, round ^= 1;
          weft_await(k_full + 8 * stage, round);
          products(stage);
          weft_await(v_full + 8 * before, earlier);
          gather(before);
          weft_done<1>();
          weft_hold(s);
          if (speaks) weft_arrive(k_empty + 8 * stage);
          soften(smaller);
          weft_done<0>();
          weft_hold(o);
          if (speaks) weft_arrive(v_empty + 8 * before);
          #pragma unroll
          for (int j = 0; j < kFP / 8; ++j) {
            o[4 * j] *= smaller[0], o[4 * j + 1] *= smaller[0];
            o[4 * j + 2] *= smaller[1], o[4 * j + 3] *= smaller[1];
          }
          pack();
        }
        if (speaks) weft_arrive(q_empty);
        weft_await(v_full + 8 * stage, round);
        gather(stage);
        weft_done<0>();
        weft_hold(o);
        if (speaks) weft_arrive(v_empty + 8 * stage);
        if (++stage == kStages) stage = 0, round ^= 1;
      } else if (speaks) {
        weft_arrive(q_empty);
      }
      // Keys that only later rows see.
      for (; t < end; t += kN) {
        weft_await(k_full + 8 * stage, round);
        weft_await(v_full + 8 * stage, round);
        if (speaks) weft_arrive(k_empty + 8 * stage), weft_arrive(v_empty + 8 * stage);
        if (++stage == kStages) stage = 0, round ^= 1;
      }
      WEFT_HEADS
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        float sum = total[h];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        const int row = mine + warp * 16 + h * 8 + lane / 4;
        const float share = sum == 0.0f ? 0.0f : 1.0f / sum;
        weft_store_row<kFP>(y + at_y + row * kY, o + 2 * h, share, lane, row < kQueries ? kF : 0);
        if (lane % 4 == 0 && row < kQueries)
          log_sum[at_sum + row * kSum] = sum == 0.0f ? -WEFT_INFINITY : most[h] * kTwice * 0.69314718055994531f + logf(sum);
      }
    }
  }
}
)";

}  // namespace

std::string_view hopper_tiles_text() { return kHopperTiles; }
std::string_view hopper_forward_text() { return kHopperForward; }

// kTurned: what is summed over are the tile's rows.
std::string hopper_products_text(std::int64_t columns) {
  const std::int64_t sums = columns / 2;  // a thread's
  std::string registers, places;
  for (std::int64_t i = 0; i < sums; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    places += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
  }
  const std::string begin = fmt::format(
      "wgmma.mma_async.sync.aligned.m64n{}k16.f32.\" WEFT_T \".\" WEFT_T \" {{{}}}", columns, registers);
  return fmt::format(R"(
template <int kTurnedA, int kTurnedB>
__device__ __forceinline__ void weft_multiply(float (&d)[{0}], unsigned long long a, unsigned long long b, int add) {{
  asm volatile("{{\n.reg .pred add;\nsetp.ne.b32 add, %{3}, 0;\n{6}, %{1}, %{2}, add, 1, 1, %{4}, %{5};\n}}"
               : {7} : "l"(a), "l"(b), "r"(add), "n"(kTurnedA), "n"(kTurnedB));
}}
)",
                     sums, sums, sums + 1, sums + 2, sums + 3, sums + 4, begin, places) +
         fmt::format(R"(
template <int kTurnedB>
__device__ __forceinline__ void weft_multiply_held(float (&d)[{0}], const unsigned* a, unsigned long long b) {{
  asm volatile("{6}, {{%{1}, %{2}, %{3}, %{4}}}, %{5}, 1, 1, 1, %{8};"
               : {7} : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kTurnedB));
}}
)",
                     sums, sums, sums + 1, sums + 2, sums + 3, sums + 4, begin, places, sums + 5);
}

}  // namespace weft::device::cuda
