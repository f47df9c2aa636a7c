#include "weft/device/cuda/attention_source.h"

#include <algorithm>
#include <initializer_list>
#include <set>

#include <fmt/format.h>

#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/kernel_source.h"

namespace weft::device::cuda {
namespace {

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

// A warp with 32 queries reads keys half as often; wide values leave no registers for that.
int tall(const AttentionShape& shape) { return padded(shape.values) <= 128 ? 2 : 1; }

std::string head_of(const AttentionShape& shape) {
  const double scale_log2 = shape.factor * 1.4426950408889634;
  const bool plain_max = shape.factor > 0;  // the order of scores is the order of products
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
  text += fmt::format("#define WEFT_HEADS {}\n", shape.heads_source);
  text += fmt::format(
      "constexpr int kQueries = {}, kKeys = {}, kE = {}, kF = {}, kEP = {}, kFP = {}, kHeads = {}, kSharing "
      "= {};\n",
      shape.queries, shape.keys, shape.inner, shape.values, padded(shape.inner), padded(shape.values),
      shape.heads, shape.sharing);
  text += fmt::format(
      "constexpr bool kCausal = {}, kWindowed = {}, kMasked = {}, kAligned = {};\n"
      "constexpr long long kBegin = {}ll, kReach = {}ll;\n"
      "constexpr float kFactor = {}, kScaleLog2 = {}, kFactorLeft = {};\n",
      shape.causal, shape.windowed, shape.masked, shape.is_aligned, shape.begin, shape.reach,
      number(shape.factor), number(plain_max ? scale_log2 : 1), number(plain_max ? 1 : scale_log2));
  if (shape.hopper) text += fmt::format("#define WEFT_COORDINATES {}\n", shape.coordinates_source);
  return text + shape.strides_source;
}

// A swizzled tile has 64 columns in rows of 128 bytes; wider tiles are several of them side by
// side.
constexpr std::int64_t kSwizzleColumns = 64, kSwizzleBytes = 128;
std::int64_t swizzled_tiles(std::int64_t width) { return (width + kSwizzleColumns - 1) / kSwizzleColumns; }
constexpr std::int64_t kStages = 2;

std::string hopper_head(const AttentionShape& shape) {
  return head_of(shape) + fmt::format("constexpr int kEC = {}, kFC = {};\n", swizzled_tiles(shape.inner),
                                      swizzled_tiles(shape.values));
}

// weft_wgmma_ss and weft_wgmma_rs, m64 nCOLUMNS k16: the A operand in shared memory or in
// registers. The instruction names each accumulator register, so there is one function per number
// of columns.
std::string wgmma_source(std::int64_t columns) {
  const std::int64_t sums = columns / 2;  // per thread
  std::string registers, places;
  for (std::int64_t i = 0; i < sums; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    places += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
  }
  const std::string begin = fmt::format(
      "wgmma.mma_async.sync.aligned.m64n{}k16.f32.\" WEFT_T \".\" WEFT_T \" {{{}}}", columns, registers);
  return fmt::format(R"(
template <int kTransposeA, int kTransposeB>
__device__ __forceinline__ void weft_wgmma_ss(float (&d)[{0}], unsigned long long a, unsigned long long b, int add) {{
  asm volatile("{{\n.reg .pred add;\nsetp.ne.b32 add, %{3}, 0;\n{6}, %{1}, %{2}, add, 1, 1, %{4}, %{5};\n}}"
               : {7} : "l"(a), "l"(b), "r"(add), "n"(kTransposeA), "n"(kTransposeB));
}}
)",
                     sums, sums, sums + 1, sums + 2, sums + 3, sums + 4, begin, places) +
         fmt::format(R"(
template <int kTransposeB>
__device__ __forceinline__ void weft_wgmma_rs(float (&d)[{0}], const unsigned* a, unsigned long long b) {{
  asm volatile("{6}, {{%{1}, %{2}, %{3}, %{4}}}, %{5}, 1, 1, 1, %{8};"
               : {7} : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kTransposeB));
}}
)",
                     sums, sums, sums + 1, sums + 2, sums + 3, sums + 4, begin, places, sums + 5);
}

std::string wgmma_sources(std::initializer_list<std::int64_t> columns) {
  std::string source;
  for (const std::int64_t n : std::set(columns)) source += wgmma_source(n);
  return source;
}

// Each consumer warpgroup has 64 queries; one more warpgroup loads. Three consumers keep the tensor
// cores busier. For short causal sequences, two waste less on masked parts of a tile.
AttentionTiles hopper_forward_tiles(const AttentionShape& shape) {
  const bool narrow = std::max(shape.inner, shape.values) <= kSwizzleColumns,
             is_short = shape.causal && shape.queries < 2048;
  const std::int64_t warpgroups = narrow && !is_short ? 3 : 2, keys = 128;
  return {.threads = static_cast<int>(128 * (warpgroups + 1)),
          .queries = 64 * warpgroups,
          .keys = keys,
          .shared_bytes = kSwizzleBytes * (64 * warpgroups * swizzled_tiles(shape.inner) +
                                           kStages * keys *
                                               (swizzled_tiles(shape.inner) + swizzled_tiles(shape.values))) +
                          8 * (2 + 4 * kStages)};
}

// Two consumer warpgroups with 64 keys each. Each of them adds 64 x 64 blocks to dq.
AttentionTiles hopper_back_tiles(const AttentionShape& shape) {
  const std::int64_t queries = swizzled_tiles(shape.inner) == 1 ? 128 : 64, keys = 128;
  return {.threads = 384,
          .queries = queries,
          .keys = keys,
          .shared_bytes = kSwizzleBytes * (keys + 2 * queries) *
                              (swizzled_tiles(shape.inner) + swizzled_tiles(shape.values)) +
                          2 * queries * keys * 2 + 4 * 64 * 64 * 4 + 4 * queries * 4 + 8 * 15};
}

std::string hopper_forward(const AttentionShape& shape) {
  const AttentionTiles tiles = hopper_forward_tiles(shape);
  const std::int64_t warpgroups = tiles.queries / 64;
  const std::string definitions = hopper_head(shape) +
                                  fmt::format(
                                      "constexpr int kThreads = {}, kM = {}, kN = {}, kWarpgroups = {}, "
                                      "kStages = {}, kProducerRegisters = {}, "
                                      "kConsumerRegisters = {};\n",
                                      tiles.threads, tiles.queries, tiles.keys, warpgroups, kStages,
                                      warpgroups == 3 ? 32 : 24, warpgroups == 3 ? 160 : 240) +
                                  wgmma_sources({tiles.keys, padded(shape.values)});
  return kernel_source("attention_hopper_forward", definitions);
}

// Blocks wait for the preceding blocks of their head, which must be only a few steps ahead. So
// several heads are interleaved, as many as stay in the L2 cache. Rising order starts with the
// first keys, which most queries see, so the last blocks are short. Narrow causal heads are
// processed one by one from their last keys: each block reaches a tile just after the preceding
// block has left it.
std::string hopper_gradient(const AttentionShape& shape) {
  const AttentionTiles tiles = hopper_back_tiles(shape);
  const bool rising = !shape.windowed && (!shape.causal || tiles.queries == 64);
  const std::int64_t near = std::int64_t{48} << 20;
  const std::int64_t head_bytes =
      shape.queries * shape.sharing * (2 * shape.inner + 2 * shape.values + 4 * shape.inner);
  const std::int64_t together = rising ? std::clamp<std::int64_t>(near / head_bytes, 1, 16) : 1;
  const std::string definitions =
      hopper_head(shape) +
      fmt::format("constexpr int kMB = {}, kNB = {}, kTogether = {};\nconstexpr bool kRising = {};\n",
                  tiles.queries, tiles.keys, together, rising) +
      wgmma_sources({tiles.queries, kSwizzleColumns, padded(shape.inner), padded(shape.values)});
  return kernel_source("attention_hopper_gradient", definitions);
}

}  // namespace

bool supports_hopper(const AttentionShape& shape, bool gradient) {
  constexpr std::int64_t kWidest = 128;
  return on_tensor_cores(shape) && shape.is_aligned && std::max(shape.inner, shape.values) <= kWidest &&
         (!gradient || swizzled_tiles(shape.values) <= swizzled_tiles(shape.inner));
}

HopperScratch hopper_scratch(const AttentionShape& shape) {
  const std::int64_t tile = hopper_back_tiles(shape).queries,
                     tiles = shape.heads * ((shape.queries + tile - 1) / tile);
  const std::int64_t rows = tiles * tile, threads_per_row = swizzled_tiles(shape.values) * 8;
  return {.rows = rows,
          .blocks = (rows * threads_per_row + 255) / 256,
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

AttentionTiles dq_tiles(const AttentionShape& shape) {
  if (!on_tensor_cores(shape)) return plain_tiles(shape, 2, 2, 1);
  const std::int64_t queries = 64, keys = 64;
  return {.threads = 128,
          .queries = queries,
          .keys = keys,
          .shared_bytes = (queries + 2 * keys) * (tile_row(shape.inner) + tile_row(shape.values))};
}

AttentionTiles dk_dv_tiles(const AttentionShape& shape) {
  if (shape.hopper) return hopper_back_tiles(shape);
  if (!on_tensor_cores(shape)) return plain_tiles(shape, 2, 2, 2);
  const std::int64_t queries = padded(std::max(shape.inner, shape.values)) <= 128 ? 64 : 32, keys = 64;
  return {.threads = 128,
          .queries = queries,
          .keys = keys,
          .shared_bytes =
              (2 * queries + keys) * (tile_row(shape.inner) + tile_row(shape.values)) + 4 * queries * 4};
}

std::string forward_source(const AttentionShape& shape) {
  if (shape.hopper) return hopper_forward(shape);
  std::string definitions = head_of(shape);
  if (!on_tensor_cores(shape)) return kernel_source("attention_plain_forward", definitions);
  const AttentionTiles tiles = forward_tiles(shape);
  definitions += fmt::format("constexpr int kThreads = {}, kM = {}, kN = {}, kTall = {};\n", tiles.threads,
                             tiles.queries, tiles.keys, tall(shape));
  return kernel_source("attention_tensor_forward", definitions);
}

std::string gradient_source(const AttentionShape& shape) {
  if (shape.hopper) return hopper_gradient(shape);
  std::string definitions = head_of(shape);
  if (!on_tensor_cores(shape)) return kernel_source("attention_plain_gradient", definitions);
  const AttentionTiles by_query = dq_tiles(shape), by_key = dk_dv_tiles(shape);
  definitions += fmt::format(
      "constexpr int kThreadsQ = {}, kMQ = {}, kNQ = {}, kThreadsK = {}, kMK = {}, kNK = {};\n",
      by_query.threads, by_query.queries, by_query.keys, by_key.threads, by_key.queries, by_key.keys);
  return kernel_source("attention_tensor_gradient", definitions);
}

}  // namespace weft::device::cuda
