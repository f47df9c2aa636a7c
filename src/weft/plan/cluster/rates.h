// weft/plan/cluster/rates.h -- what was measured on a device: few constants per kind of kernel.
//
//   WEFT_TRY(rates, cluster::read_rates(text, "h100.rates"));
//   rates.product_seconds("bf16", 4096, 8192, 8192)       0.74 ms
//   rates.collective_seconds("all_reduce", 8, 1 << 20)    29 us
//
// A table estimates one kind of kernel in one variant (a dtype, a collective, a kernel's name):
//
//   seconds = (fixed + flops / rate + bytes / bandwidth) * exp(sum of grids)
//
// A grid interpolates linearly between its nodes, over logarithms of the call's sizes. Outside its
// knots it is constant. `weft profile fit` fits the constants to measured rows; docs/clusters.md
// describes the text:
//
//   rates h100
//   table product bf16
//     rows 4887 error 0.031 p90 0.12
//     base 3e-6 8.26e+14 5.6e+12
//     grid m 0 4 6 8 11 15 n 5 9 13 16
//       -12 34 ...                           in 1/1000 of the natural logarithm, last axis fastest
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::cluster {

// The kinds of kernels that tables exist for. prefill: causal self-attention. decode: attention of one
// new token per sequence to a cache. experts: the fused expert layer of one rank.
enum class RateKind : std::uint8_t { product, prefill, decode, experts, mamba2, collective };
constexpr std::size_t kRateKinds = 6;
constexpr std::size_t kMostRateSizes = 8, kMostRateFeatures = 12, kMostRateAxes = 3;

std::string_view name(RateKind kind);
std::optional<RateKind> find_rate_kind(std::string_view name);
// The sizes of a call, in order, by the columns of measured tables: m, n, k.
std::span<const std::string_view> rate_sizes(RateKind kind);
// The features that grids are over. Index of one by its name; empty if there is none.
std::span<const std::string_view> rate_features(RateKind kind);
std::optional<std::size_t> find_rate_feature(RateKind kind, std::string_view name);

// The work of a call, and its features.
struct RatePoint {
  double flops = 0, bytes = 0;
  std::array<double, kMostRateFeatures> features{};
};
// `width`: bytes per element. `processors`: multiprocessors of the device, whose waves products fill.
RatePoint rate_point(RateKind kind, std::string_view variant, std::span<const double> sizes,
                     double processors);

struct RateAxis {
  std::size_t feature = 0;
  std::vector<double> knots;  // ascending
};

struct RateGrid {
  std::optional<std::size_t> factor;  // a feature that multiplies the grid
  std::vector<RateAxis> axes;
  std::vector<double> values;  // natural logarithms
};
std::size_t node_count(const RateGrid& grid);

// The nodes around a point and their weights; at most 2^kMostRateAxes of them.
struct RateNode {
  std::size_t node = 0;
  double weight = 0;
};
struct RateNodes {
  std::array<RateNode, std::size_t{1} << kMostRateAxes> nodes;
  std::size_t count = 0;
};
RateNodes nodes_around(const RateGrid& grid, const RatePoint& point);

struct RateTable {
  RateKind kind = RateKind::product;
  std::string variant;              // "bf16", "all_reduce"; prefill and decode: "bf16"
  std::int64_t rows = 0;            // that were fitted
  double error = 0, error_p90 = 0;  // relative, of held-out shapes
  double processors = 0;            // products only
  double fixed_seconds = 0, flops_per_second = 0, bytes_per_second = 0;
  std::vector<RateGrid> grids;

  double base_seconds(const RatePoint& point) const;
  double seconds(std::span<const double> sizes) const;
};

class Rates {
 public:
  std::string device;
  std::string comment;  // lines without their "# "
  std::vector<RateTable> tables;
  // The fraction of the forward pass's FLOP/s that the gradient of attention reaches; 0: unknown.
  double attention_gradient_share = 0;

  const RateTable* find(RateKind kind, std::string_view variant) const;

  // Seconds of one kernel within a stream of kernels, its start included. Nothing without a table.
  std::optional<double> product_seconds(std::string_view dtype, double m, double n, double k,
                                        double batch = 1) const;
  // `pairs`: of queries and keys that attend, per head and sequence. Forward only.
  std::optional<double> attention_seconds(double batch, double heads, double kv_heads, double head_dim,
                                          double keys, double pairs) const;
  std::optional<double> decode_seconds(double batch, double cached_tokens, double heads, double kv_heads,
                                       double head_dim) const;
  std::optional<double> collective_seconds(std::string_view collective, double ranks, double bytes) const;

  // Part of these seconds that is not the kernel's own work, as the tables assume.
  double fixed_seconds(RateKind kind, std::string_view variant) const;
};

// `path` is for errors.
Result<Rates> read_rates(std::string_view text, std::string_view path);
std::string print(const Rates& rates);

}  // namespace weft::cluster
