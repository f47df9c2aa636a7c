#include "weft/device/cuda/attention_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/device/cuda/attention_kernels.h"
#include "weft/device/cuda/expression.h"

namespace weft::device::cuda {
namespace {

// What all of them share: who sees whom, and tiles from memory to where a block keeps them.
constexpr std::string_view kCommon = R"(
__device__ __forceinline__ int weft_clamp(long long x) {
  return x < 0 ? 0 : x > kKeys ? kKeys : int(x);
}
// Query s sees the keys [weft_first(s), weft_end(s)), but for the mask.
__device__ __forceinline__ int weft_first(long long s) { return kWindowed ? weft_clamp(kBegin + s + 1 - kReach) : 0; }
__device__ __forceinline__ int weft_end(long long s) { return kCausal ? weft_clamp(kBegin + s + 1) : kKeys; }
// Scores are kept so that exp2 gives what exp would: kTwice is the factor that is left to apply.
__device__ __forceinline__ float weft_exp2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
)";

constexpr std::string_view kDots = R"(
extern "C" __global__ __launch_bounds__(256) void weft_dots(const T* y, const T* dy, float* dots) {
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
)";

bool on_tensor_cores(const AttentionShape& shape) { return shape.dtype != plan::DType::f32; }
std::int64_t padded(std::int64_t width) { return (width + 15) / 16 * 16; }
std::int64_t tile_row(std::int64_t width) { return (padded(width) + 8) * 2; }  // bytes
constexpr std::int64_t kPlainTile = 32;

AttentionTiles plain_tiles(const AttentionShape& shape, std::int64_t of_inner, std::int64_t of_values,
                           std::int64_t scores) {
  return {.threads = 256,
          .queries = kPlainTile,
          .keys = kPlainTile,
          .shared_bytes =
              4 * kPlainTile * (of_inner * (shape.inner + 1) + of_values * (shape.values + 1) + scores * 33)};
}

// Warps that have 32 queries each read keys half as often; wide values leave no registers for that.
int tall(const AttentionShape& shape) { return padded(shape.values) <= 128 ? 2 : 1; }

std::string head_of(const AttentionShape& shape) {
  const double twice = shape.factor * 1.4426950408889634;
  const bool plain_max = shape.factor > 0;  // the largest score is the largest product
  std::string text(prelude());
  text +=
      fmt::format("typedef {} T;\n#define WEFT_T \"{}\"\n", type_name(shape.dtype), plan::name(shape.dtype));
  text += shape.masked ? "#define WEFT_MASK const unsigned char* mask,\n"
                         "#define WEFT_SEEN (mask[at_mask + row * kMaskQ + key * kMaskK] != 0)\n"
                       : "#define WEFT_MASK\n#define WEFT_SEEN true\n";
  text += fmt::format("#define WEFT_HEADS {}\n", shape.heads_text);
  text += fmt::format(
      "constexpr int kQueries = {}, kKeys = {}, kE = {}, kF = {}, kEP = {}, kFP = {}, kHeads = {}, kSharing "
      "= {};\n",
      shape.queries, shape.keys, shape.inner, shape.values, padded(shape.inner), padded(shape.values),
      shape.heads, shape.sharing);
  text += fmt::format(
      "constexpr bool kCausal = {}, kWindowed = {}, kMasked = {}, kAligned = {};\n"
      "constexpr long long kBegin = {}ll, kReach = {}ll;\n"
      "constexpr float kFactor = {}, kTwice = {}, kFactorLeft = {};\n",
      shape.causal, shape.windowed, shape.masked, shape.is_aligned, shape.begin, shape.reach,
      number(shape.factor), number(plain_max ? twice : 1), number(plain_max ? 1 : twice));
  return text + shape.strides_text + std::string(kCommon);
}

}  // namespace

AttentionTiles forward_tiles(const AttentionShape& shape) {
  if (!on_tensor_cores(shape)) return plain_tiles(shape, 2, 1, 1);
  const std::int64_t queries = 64 * tall(shape), keys = 64;
  return {.threads = 128,
          .queries = queries,
          .keys = keys,
          .shared_bytes = (queries + 2 * keys) * tile_row(shape.inner) + 2 * keys * tile_row(shape.values)};
}

AttentionTiles queries_back_tiles(const AttentionShape& shape) {
  if (!on_tensor_cores(shape)) return plain_tiles(shape, 2, 2, 1);
  const std::int64_t queries = 64, keys = 64;
  return {.threads = 128,
          .queries = queries,
          .keys = keys,
          .shared_bytes = (queries + 2 * keys) * (tile_row(shape.inner) + tile_row(shape.values))};
}

AttentionTiles keys_back_tiles(const AttentionShape& shape) {
  if (!on_tensor_cores(shape)) return plain_tiles(shape, 2, 2, 2);
  const std::int64_t queries = padded(std::max(shape.inner, shape.values)) <= 128 ? 64 : 32, keys = 64;
  return {.threads = 128,
          .queries = queries,
          .keys = keys,
          .shared_bytes =
              (2 * queries + keys) * (tile_row(shape.inner) + tile_row(shape.values)) + 4 * queries * 4};
}

std::string forward_text(const AttentionShape& shape) {
  std::string text = head_of(shape);
  if (!on_tensor_cores(shape))
    return text + std::string(plain_tiles_text()) + std::string(plain_forward_text());
  const AttentionTiles tiles = forward_tiles(shape);
  text += fmt::format("constexpr int kThreads = {}, kM = {}, kN = {}, kTall = {};\n", tiles.threads,
                      tiles.queries, tiles.keys, tall(shape));
  return text + std::string(tensor_tiles_text()) + std::string(tensor_forward_text());
}

std::string gradient_text(const AttentionShape& shape) {
  std::string text = head_of(shape) + std::string(kDots);
  if (!on_tensor_cores(shape))
    return text + std::string(plain_tiles_text()) + std::string(plain_gradient_text());
  const AttentionTiles by_query = queries_back_tiles(shape), by_key = keys_back_tiles(shape);
  text += fmt::format(
      "constexpr int kThreadsQ = {}, kMQ = {}, kNQ = {}, kThreadsK = {}, kMK = {}, kNK = {};\n",
      by_query.threads, by_query.queries, by_query.keys, by_key.threads, by_key.queries, by_key.keys);
  return text + std::string(tensor_tiles_text()) + std::string(tensor_gradient_text());
}

}  // namespace weft::device::cuda
