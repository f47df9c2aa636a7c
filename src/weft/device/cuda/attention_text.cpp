#include "weft/device/cuda/attention_text.h"

#include <algorithm>
#include <initializer_list>
#include <set>

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
                         "#define WEFT_MASK_AT(row, key) (mask + at_mask + (row) * kMaskQ + (key) * kMaskK)\n"
                         "#define WEFT_SEEN (*WEFT_MASK_AT(row, key) != 0)\n"
                       : "#define WEFT_MASK\n"
                         "#define WEFT_MASK_AT(row, key) nullptr\n"
                         "#define WEFT_SEEN true\n"
                         "constexpr long long kMaskQ = 0, kMaskK = 0;\n";
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
  if (shape.hopper) text += fmt::format("#define WEFT_CORNERS {}\n", shape.corners_text);
  return text + shape.strides_text + std::string(kCommon);
}

// Tiles on Hopper are side by side, 64 columns each.
constexpr std::int64_t kSide = 64, kSideRow = 128;
std::int64_t sides(std::int64_t width) { return (width + kSide - 1) / kSide; }
constexpr std::int64_t kStages = 2;

std::string hopper_head(const AttentionShape& shape) {
  return head_of(shape) +
         fmt::format("constexpr int kEC = {}, kFC = {};\n", sides(shape.inner), sides(shape.values)) +
         std::string(hopper_tiles_text());
}

std::string products_text(std::initializer_list<std::int64_t> columns) {
  std::string text;
  for (const std::int64_t n : std::set(columns)) text += hopper_products_text(n);
  return text;
}

// Teams of 64 queries. Three of them keep the tensor cores busier; where rows are short two leave less of a tile unseen.
AttentionTiles hopper_forward_tiles(const AttentionShape& shape) {
  const bool narrow = std::max(shape.inner, shape.values) <= kSide,
             is_short = shape.causal && shape.queries < 2048;
  const std::int64_t teams = narrow && !is_short ? 3 : 2, keys = 128;
  return {.threads = static_cast<int>(128 * (teams + 1)),
          .queries = 64 * teams,
          .keys = keys,
          .shared_bytes = kSideRow * (64 * teams * sides(shape.inner) +
                                      kStages * keys * (sides(shape.inner) + sides(shape.values))) +
                          8 * (2 + 4 * kStages)};
}

// Two teams of 64 keys; dq is 64 x 64 for each of them.
AttentionTiles hopper_back_tiles(const AttentionShape& shape) {
  const std::int64_t queries = sides(shape.inner) == 1 ? 128 : 64, keys = 128;
  return {.threads = 384,
          .queries = queries,
          .keys = keys,
          .shared_bytes = kSideRow * (keys + 2 * queries) * (sides(shape.inner) + sides(shape.values)) +
                          2 * queries * keys * 2 + 4 * 64 * 64 * 4 + 4 * queries * 4 + 8 * 15};
}

std::string hopper_forward(const AttentionShape& shape) {
  const AttentionTiles tiles = hopper_forward_tiles(shape);
  const std::int64_t teams = tiles.queries / 64;
  return hopper_head(shape) +
         fmt::format(
             "constexpr int kThreads = {}, kM = {}, kN = {}, kTeams = {}, kStages = {}, kFewRegisters = {}, "
             "kManyRegisters = {};\n",
             tiles.threads, tiles.queries, tiles.keys, teams, kStages, teams == 3 ? 32 : 24,
             teams == 3 ? 160 : 240) +
         products_text({tiles.keys, padded(shape.values)}) + std::string(hopper_forward_text());
}

// Blocks wait for those that come before them, which must be few steps ahead: so heads go side by side, as many as stay
// near. With the first keys first, which most queries see, blocks that are left to the end are short; going through
// narrow causal heads one by one from their last keys on, each block meets a tile just after the one before has left it.
std::string hopper_gradient(const AttentionShape& shape) {
  const AttentionTiles tiles = hopper_back_tiles(shape);
  const bool rising = !shape.windowed && (!shape.causal || tiles.queries == 64);
  const std::int64_t near = std::int64_t{48} << 20;
  const std::int64_t head_bytes =
      shape.queries * shape.sharing * (2 * shape.inner + 2 * shape.values + 4 * shape.inner);
  const std::int64_t together = rising ? std::clamp<std::int64_t>(near / head_bytes, 1, 16) : 1;
  return hopper_head(shape) +
         fmt::format("constexpr int kMB = {}, kNB = {}, kTogether = {};\nconstexpr bool kRising = {};\n",
                     tiles.queries, tiles.keys, together, rising) +
         products_text({tiles.queries, kSide, padded(shape.inner), padded(shape.values)}) +
         std::string(hopper_gradient_text());
}

}  // namespace

bool takes_hopper(const AttentionShape& shape, bool gradient) {
  constexpr std::int64_t kWidest = 128;
  return on_tensor_cores(shape) && shape.is_aligned && std::max(shape.inner, shape.values) <= kWidest &&
         (!gradient || sides(shape.values) <= sides(shape.inner));
}

HopperRoom hopper_room(const AttentionShape& shape) {
  const std::int64_t tile = hopper_back_tiles(shape).queries,
                     tiles = shape.heads * ((shape.queries + tile - 1) / tile);
  const std::int64_t rows = tiles * tile, threads_a_row = sides(shape.values) * 8;
  return {.rows = rows,
          .blocks = (rows * threads_a_row + 255) / 256,
          .bytes = 4 * ((2 * rows + 2 * tiles + 31) / 32 * 32 + tiles * 2 * 64 * 64)};
}

AttentionTiles forward_tiles(const AttentionShape& shape) {
  if (shape.hopper) return hopper_forward_tiles(shape);
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
  if (shape.hopper) return hopper_back_tiles(shape);
  if (!on_tensor_cores(shape)) return plain_tiles(shape, 2, 2, 2);
  const std::int64_t queries = padded(std::max(shape.inner, shape.values)) <= 128 ? 64 : 32, keys = 64;
  return {.threads = 128,
          .queries = queries,
          .keys = keys,
          .shared_bytes =
              (2 * queries + keys) * (tile_row(shape.inner) + tile_row(shape.values)) + 4 * queries * 4};
}

std::string forward_text(const AttentionShape& shape) {
  if (shape.hopper) return hopper_forward(shape);
  std::string text = head_of(shape);
  if (!on_tensor_cores(shape))
    return text + std::string(plain_tiles_text()) + std::string(plain_forward_text());
  const AttentionTiles tiles = forward_tiles(shape);
  text += fmt::format("constexpr int kThreads = {}, kM = {}, kN = {}, kTall = {};\n", tiles.threads,
                      tiles.queries, tiles.keys, tall(shape));
  return text + std::string(tensor_tiles_text()) + std::string(tensor_forward_text());
}

std::string gradient_text(const AttentionShape& shape) {
  if (shape.hopper) return hopper_gradient(shape);
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
