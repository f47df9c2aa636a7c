#include "weft/plan/cluster/rates.h"

#include <algorithm>
#include <cmath>

namespace weft::cluster {
namespace {

constexpr std::string_view kKindNames[kRateKinds] = {"product", "prefill", "decode",
                                                     "experts", "mamba2",  "collective"};

constexpr std::string_view kProductSizes[] = {"m", "n", "k"};
constexpr std::string_view kPrefillSizes[] = {"batch", "tokens", "heads", "kv_heads", "head_dim"};
constexpr std::string_view kDecodeSizes[] = {"batch", "cached_tokens", "heads", "kv_heads", "head_dim"};
constexpr std::string_view kExpertSizes[] = {"tokens",  "hidden",          "intermediate",    "topk",
                                             "experts", "tensor_parallel", "expert_parallel", "skew"};
constexpr std::string_view kMambaSizes[] = {"batch", "tokens",   "d_model", "d_state",
                                            "heads", "head_dim", "groups",  "chunk"};
constexpr std::string_view kCollectiveSizes[] = {"gpus", "bytes"};

// Features are logarithms of base 2, except skew and the four that multiply grids.
constexpr std::string_view kProductFeatures[] = {"m",           "n",           "k",           "weights",
                                                 "wave128x128", "wave128x256", "wave256x128", "partial"};
constexpr std::string_view kPrefillFeatures[] = {"tokens", "batch_heads", "batch",     "head_dim",
                                                 "group",  "kv_heads",    "all_tokens"};
constexpr std::string_view kDecodeFeatures[] = {"tokens", "batch_kv_heads", "batch",      "head_dim",
                                                "group",  "kv_heads",       "batch_heads"};
constexpr std::string_view kExpertFeatures[] = {
    "rows_per_expert", "local_experts", "intermediate", "skew", "hidden", "rows",
    "expert_parallel", "tokens",        "topk",         "bytes"};
constexpr std::string_view kMambaFeatures[] = {"bytes", "channels", "tokens", "batch", "d_state", "chunk"};
constexpr std::string_view kCollectiveFeatures[] = {"gpus", "bytes"};

double log2_of(double size) { return std::log2(std::max(size, 1e-9)); }

// The logarithm of the part of a wave of tiles that is idle, which counts from half a wave on.
double idle_wave(double m, double n, double tile_m, double tile_n, double processors) {
  constexpr double kMost = 0.8;
  const double waves = std::ceil(m / tile_m) * std::ceil(n / tile_n) / std::max(processors, 1.0);
  return waves > 0.5 ? std::min(std::log(std::ceil(waves) / waves), kMost) : 0;
}

double element_bytes(std::string_view variant) {
  if (variant == "fp8") return 1;
  if (variant == "nvfp4") return 0.5625;  // half a byte, and a scale per 16 elements
  return variant == "f32" ? 4 : 2;
}

RatePoint product_point(double m, double n, double k, double width, double processors) {
  constexpr double kTile = 128, kMostPartial = 0.7;
  return {2 * m * n * k,
          width * (m * k + n * k) + 2 * m * n,
          {log2_of(m), log2_of(n), log2_of(k), log2_of(n * k), idle_wave(m, n, 128, 128, processors),
           idle_wave(m, n, 128, 256, processors), idle_wave(m, n, 256, 128, processors),
           std::min(std::log(std::ceil(m / kTile) * kTile / std::max(m, 1.0)), kMostPartial)}};
}

RatePoint experts_point(std::span<const double> s, double width) {
  const double intermediate = s[2] / s[5], experts = std::max(s[4] / s[6], 1.0), rows = s[0] * s[3] / s[6];
  const double used = experts * (1 - std::pow(1 - 1 / std::max(experts, 1 + 1e-9), rows));
  const double bytes = used * 3 * s[1] * intermediate * width + rows * (4 * s[1] + 6 * intermediate);
  return {6 * rows * s[1] * intermediate,
          bytes,
          {log2_of(rows / experts), log2_of(experts), log2_of(intermediate), s[7], log2_of(s[1]),
           log2_of(rows), log2_of(s[6]), log2_of(s[0]), log2_of(s[3]), log2_of(bytes)}};
}

// Bytes that a rank sends, or a multiple of them.
double collective_bytes(std::string_view collective, double ranks, double bytes) {
  const double others = ranks > 1 ? (ranks - 1) / ranks : 0;
  return (collective == "all_reduce" ? 2 : 1) * others * bytes;
}

}  // namespace

std::string_view name(RateKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<RateKind> find_rate_kind(std::string_view name) {
  const auto found = std::ranges::find(kKindNames, name);
  if (found == std::end(kKindNames)) return std::nullopt;
  return static_cast<RateKind>(found - std::begin(kKindNames));
}

std::span<const std::string_view> rate_sizes(RateKind kind) {
  switch (kind) {
    case RateKind::product: return kProductSizes;
    case RateKind::prefill: return kPrefillSizes;
    case RateKind::decode: return kDecodeSizes;
    case RateKind::experts: return kExpertSizes;
    case RateKind::mamba2: return kMambaSizes;
    case RateKind::collective: return kCollectiveSizes;
  }
  return {};
}

std::span<const std::string_view> rate_features(RateKind kind) {
  switch (kind) {
    case RateKind::product: return kProductFeatures;
    case RateKind::prefill: return kPrefillFeatures;
    case RateKind::decode: return kDecodeFeatures;
    case RateKind::experts: return kExpertFeatures;
    case RateKind::mamba2: return kMambaFeatures;
    case RateKind::collective: return kCollectiveFeatures;
  }
  return {};
}

std::optional<std::size_t> find_rate_feature(RateKind kind, std::string_view name) {
  const auto features = rate_features(kind);
  const auto found = std::ranges::find(features, name);
  if (found == features.end()) return std::nullopt;
  return static_cast<std::size_t>(found - features.begin());
}

RatePoint rate_point(RateKind kind, std::string_view variant, std::span<const double> s, double processors) {
  WEFT_CHECK(s.size() == rate_sizes(kind).size());
  switch (kind) {
    case RateKind::product: return product_point(s[0], s[1], s[2], element_bytes(variant), processors);
    case RateKind::prefill:
      return {2 * s[0] * s[2] * s[1] * s[1] * s[4],  // causal: half of the pairs
              4 * s[0] * s[1] * s[4] * (s[2] + s[3]),
              {log2_of(s[1]), log2_of(s[0] * s[2]), log2_of(s[0]), log2_of(s[4]), log2_of(s[2] / s[3]),
               log2_of(s[3]), log2_of(s[0] * s[1])}};
    case RateKind::decode:
      return {0,
              4 * s[0] * s[1] * s[4] * s[3] + 4 * s[0] * s[2] * s[4],
              {log2_of(s[1]), log2_of(s[0] * s[3]), log2_of(s[0]), log2_of(s[4]), log2_of(s[2] / s[3]),
               log2_of(s[3]), log2_of(s[0] * s[2])}};
    case RateKind::experts: return experts_point(s, element_bytes(variant));
    case RateKind::mamba2: {
      const double channels = s[4] * s[5] + 2 * s[6] * s[3];
      return {0,
              4 * s[0] * s[1] * channels,
              {log2_of(4 * s[0] * s[1] * channels), log2_of(channels), log2_of(s[1]), log2_of(s[0]),
               log2_of(s[3]), log2_of(s[7])}};
    }
    case RateKind::collective:
      return {0, collective_bytes(variant, s[0], s[1]), {log2_of(s[0]), log2_of(s[1])}};
  }
  return {};
}

std::size_t node_count(const RateGrid& grid) {
  std::size_t count = 1;
  for (const RateAxis& axis : grid.axes) count *= axis.knots.size();
  return count;
}

RateNodes nodes_around(const RateGrid& grid, const RatePoint& point) {
  RateNodes around;
  around.nodes[0] = {0, grid.factor ? point.features[*grid.factor] : 1};
  around.count = 1;
  for (const RateAxis& axis : grid.axes) {
    const std::vector<double>& knots = axis.knots;
    const double x = std::clamp(point.features[axis.feature], knots.front(), knots.back());
    std::size_t below = static_cast<std::size_t>(std::ranges::upper_bound(knots, x) - knots.begin());
    below = std::min(std::max<std::size_t>(below, 1) - 1, knots.size() - 1);
    const bool last = below + 1 == knots.size();
    const double part = last ? 0 : (x - knots[below]) / (knots[below + 1] - knots[below]);
    const std::size_t count = around.count;
    for (std::size_t i = 0; i < count; ++i) {
      RateNode& node = around.nodes[i];
      node.node = node.node * knots.size() + below;
      if (part > 0) around.nodes[around.count++] = {node.node + 1, node.weight * part};
      node.weight *= 1 - part;
    }
  }
  return around;
}

double RateTable::base_seconds(const RatePoint& point) const {
  return fixed_seconds + (flops_per_second > 0 ? point.flops / flops_per_second : 0) +
         (bytes_per_second > 0 ? point.bytes / bytes_per_second : 0);
}

double RateTable::seconds(std::span<const double> sizes) const {
  const RatePoint point = rate_point(kind, variant, sizes, processors);
  double log = 0;
  for (const RateGrid& grid : grids) {
    const RateNodes around = nodes_around(grid, point);
    for (std::size_t i = 0; i < around.count; ++i)
      log += around.nodes[i].weight * grid.values[around.nodes[i].node];
  }
  constexpr double kMostLog = 5;  // of a correction that was fitted; beyond it is an extrapolation gone wild
  return base_seconds(point) * std::exp(std::clamp(log, -kMostLog, kMostLog));
}

const RateTable* Rates::find(RateKind kind, std::string_view variant) const {
  const auto found = std::ranges::find_if(
      tables, [&](const RateTable& table) { return table.kind == kind && table.variant == variant; });
  return found == tables.end() ? nullptr : &*found;
}

std::optional<double> Rates::product_seconds(std::string_view dtype, double m, double n, double k,
                                             double batch) const {
  const RateTable* const table = find(RateKind::product, dtype);
  if (table == nullptr) return std::nullopt;
  // Products of one call fill waves together, as more rows of one product do.
  const std::array sizes = {m * batch, n, k};
  return table->seconds(sizes);
}

std::optional<double> Rates::attention_seconds(double batch, double heads, double kv_heads, double head_dim,
                                               double keys, double pairs) const {
  const RateTable* const table = find(RateKind::prefill, "bf16");
  if (table == nullptr) return std::nullopt;
  const std::array sizes = {batch, keys, heads, kv_heads, head_dim};
  const double causal = table->seconds(sizes);
  const double fixed = std::min(table->fixed_seconds, causal);
  return fixed + (causal - fixed) * pairs / (keys * (keys + 1) / 2);
}

std::optional<double> Rates::decode_seconds(double batch, double cached_tokens, double heads, double kv_heads,
                                            double head_dim) const {
  const RateTable* const table = find(RateKind::decode, "bf16");
  if (table == nullptr) return std::nullopt;
  const std::array sizes = {batch, cached_tokens, heads, kv_heads, head_dim};
  return table->seconds(sizes);
}

std::optional<double> Rates::collective_seconds(std::string_view collective, double ranks,
                                                double bytes) const {
  const RateTable* const table = find(RateKind::collective, collective);
  if (table == nullptr) return std::nullopt;
  const std::array sizes = {ranks, bytes};
  return table->seconds(sizes);
}

double Rates::fixed_seconds(RateKind kind, std::string_view variant) const {
  const RateTable* const table = find(kind, variant);
  return table == nullptr ? 0 : table->fixed_seconds;
}

}  // namespace weft::cluster
