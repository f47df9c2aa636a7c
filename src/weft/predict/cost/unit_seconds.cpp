#include "weft/predict/cost/unit_seconds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <variant>

#include "weft/plan/cluster/rates.h"
#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/convolution_cost.h"
#include "weft/predict/cost/roofline.h"
#include "weft/program/tasks/loss_tiles.h"

namespace weft::cost {
namespace {

using program::Place;
using program::Unit;

constexpr double kTile = 128, kNarrowestTile = 16, kMultiprocessors = 108;
constexpr double kPipelineFill = 128, kMeasuredFill = 32;  // in summands
constexpr double kConvolutionRate = 0.6;                   // implicit GEMM with small tiles and halos
constexpr double kOrdinaryConvolutionRate = 0.5;           // fraction of the f32 rate, without a matrix unit
constexpr double kCoreHalf = 16;

double as_double(std::int64_t number) { return static_cast<double>(number); }

// Chooses the tile side for a matrix side of this length; returns the fraction of the tiles that it
// fills.
double fill_of(double side) {
  const double tile = std::clamp(as_double(static_cast<std::int64_t>(std::bit_ceil(
                                     static_cast<std::uint64_t>(std::min(std::max(side, 1.0), kTile))))),
                                 kNarrowestTile, kTile);
  return side / (std::ceil(side / tile) * tile);
}

double bytes_of(const Place& place) {
  const program::Extent all = extent(place);
  const double reach = as_double(all.end - all.begin);
  return std::min(reach, as_double(place.elements() * plan::size_in_bytes(place.dtype)));
}

double moved_bytes(const Unit& unit) {
  double bytes = 0;
  for (const Place& place : unit.reads) bytes += bytes_of(place);
  for (const Place& place : unit.writes) bytes += bytes_of(place);
  return bytes;
}

plan::DType dtype_of(const Unit& unit) { return unit.reads.empty() ? plan::DType::f32 : unit.reads[0].dtype; }

// A rate that is not stated is no limit; the other terms bound the time.
double over(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

std::optional<cluster::KernelKind> kernel_kind(const plan::Operator& op) {
  using enum cluster::KernelKind;
  if (&op == &ops::attention()) return attention;
  if (&op == &ops::attention_gradient()) return attention_gradient;
  if (&op == &ops::conv2d()) return convolution;
  if (&op == &ops::conv2d_input_gradient() || &op == &ops::conv2d_weight_gradient())
    return convolution_gradient;
  return {};
}

// Time of layout conversions on top of the kernel, where convolutions were measured.
double layout_conversion_seconds(const program::Program& program, const Unit& unit,
                                 const cluster::Device& device) {
  const auto* const call = std::get_if<program::OperatorCall>(&unit.kernel);
  if (call == nullptr) return 0;
  const plan::NodeView node = program.graph->view(call->node);
  if (!ops::is_convolution(node.op()) || !(device.rate(*kernel_kind(node.op())) > 0)) return 0;
  return convolution_cost(node, device).layout_conversion_seconds;
}

// Bytes that are read twice: batch-norm's images, since the statistics are known only after a whole
// pass.
double reread_bytes(const program::Program& program, const Unit& unit, const cluster::Device& device) {
  const auto* const call = std::get_if<program::OperatorCall>(&unit.kernel);
  const bool is_norm = call != nullptr && &program.graph->view(call->node).op() == &ops::batch_norm();
  return is_norm && was_measured(device) ? bytes_of(unit.reads[0]) : 0;
}

// The name of a dtype in tables of rates; empty if they have none.
std::string_view rates_dtype(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::bf16:
    case plan::DType::f16: return "bf16";
    case plan::DType::f8e4m3:
    case plan::DType::f8e5m2: return "fp8";
    default: return {};
  }
}

// Weft's own measurements of a device are of training and take precedence; they lack f8.
bool takes_rates(const cluster::Device& device, plan::DType dtype) {
  const std::string_view variant = rates_dtype(dtype);
  return device.rates != nullptr && !variant.empty() && (variant == "fp8" || !was_measured(device));
}

// Without the start of the kernel, which unit_seconds() adds.
double without_start(double seconds, double fixed, const cluster::Device& device) {
  constexpr double kLeastPart = 0.1;
  return std::max(seconds - std::min(fixed, device.launch_seconds), kLeastPart * seconds);
}

std::optional<double> fitted_product(const cluster::Device& device, plan::DType dtype, double m, double n,
                                     double k, double points) {
  if (!takes_rates(device, dtype)) return std::nullopt;
  const std::string_view variant = rates_dtype(dtype);
  const auto seconds = device.rates->product_seconds(variant, m, n, k, points);
  if (!seconds) return std::nullopt;
  return without_start(*seconds, device.rates->fixed_seconds(cluster::RateKind::product, variant), device);
}

// Attention or its gradient, from the rates of causal self-attention.
std::optional<double> fitted_attention(const cluster::Device& device, const plan::NodeView& node) {
  const plan::DType dtype = node.input_type(0).dtype;
  if (rates_dtype(dtype) != "bf16" || !takes_rates(device, dtype)) return std::nullopt;
  const ops::AttentionGeometry of = ops::attending(node);
  const plan::Type& k = node.input_type(ops::kAttentionK);
  // Rows are [batch.., kv heads, group, queries]: k lacks the group.
  double batch = 1, kv_heads = 1, group = 1;
  for (const plan::Dim& dim : of.rows) {
    if (dim.index == of.along.index) continue;
    if (!k.has(dim.index)) {
      group *= as_double(dim.size);
    } else {
      batch *= kv_heads;
      kv_heads = as_double(dim.size);
    }
  }
  const double heads = kv_heads * group, keys = as_double(of.over.size),
               width = as_double(ops::points_of(of.inner)),
               value_width = as_double(ops::points_of(of.values)), pairs = of.pairs();
  const auto forward =
      device.rates->attention_seconds(batch, heads, kv_heads, width, keys, pairs / (batch * heads));
  if (!forward) return std::nullopt;
  const double seconds =
      without_start(*forward, device.rates->fixed_seconds(cluster::RateKind::prefill, "bf16"), device) *
      (width + value_width) / (2 * width);
  if (&node.op() != &ops::attention_gradient()) return seconds;
  constexpr double kUsualShare = 0.8;  // of an H200 and of AMD's
  const double share =
      device.rates->attention_gradient_share > 0 ? device.rates->attention_gradient_share : kUsualShare;
  return seconds * node.op().work(node).flops / (2 * pairs * (width + value_width)) / share;
}

class Arithmetic {
 public:
  Arithmetic(const program::Program& program, const Unit& unit, const cluster::Device& device)
      : program_(program), unit_(unit), device_(device) {}

  double operator()(const program::MatrixProduct& product) const {
    const double calls = as_double(product.calls());
    double points = 1;
    for (const program::ProductLoop& loop : product.outer) points *= as_double(loop.size);
    // Sums around the product run within it if there is a kernel for it, as a longer k.
    const double k = as_double(product.k) * calls / points;
    if (const auto fitted =
            fitted_product(device_, dtype_of(unit_), as_double(product.m), as_double(product.n), k, points))
      return *fitted;
    const double reached = product_efficiency(device_, as_double(product.m), as_double(product.n), k, points);
    return over(product.flops(), reached * peak_rate(device_, dtype_of(unit_)));
  }
  double operator()(const program::RowLoop& loop) const {
    const double lanes = as_double(loop.rows()) * as_double(loop.length);
    return over(lanes * as_double(static_cast<std::int64_t>(loop.code.size())),
                device_.rate(cluster::Precision::f32));
  }
  double operator()(const program::OperatorCall& call) const {
    const plan::NodeView node = program_.graph->view(call.node);
    if (ops::is_attention_operator(node.op()))
      if (const auto fitted = fitted_attention(device_, node)) return *fitted;
    if (const auto kind = kernel_kind(node.op()); kind && device_.rate(*kind) > 0) {
      // Measured in bf16; other dtypes are slower by the ratio of the matrix rates.
      const double slower =
          peak_rate(device_, plan::DType::bf16) / peak_rate(device_, node.input_type(0).dtype);
      const double flops = node.op().work(node).flops;
      if (ops::is_attention_operator(node.op()))
        return over(flops * slower, attention_efficiency(node) * device_.rate(*kind));
      const ConvolutionCost cost = convolution_cost(node, device_);
      return cost.uses_matrix_unit
                 ? over(flops * slower, cost.efficiency * device_.rate(*kind))
                 : over(flops, kOrdinaryConvolutionRate * device_.rate(cluster::Precision::f32));
    }
    if (&node.op() == &ops::contract() && node.input_count() == 2) return contraction(node);
    const plan::Work work = node.op().work(node);
    if (&node.op() == &ops::linear_cross_entropy()) {
      const program::LossTiles tiles = program::loss_tiles(node);
      if (const auto fitted = fitted_product(device_, dtype_of(unit_), as_double(tiles.tile),
                                             as_double(tiles.classes), as_double(tiles.width), 1))
        return *fitted * work.flops /
               (2 * as_double(tiles.tile) * as_double(tiles.classes) * as_double(tiles.width));
      const double reached = product_efficiency(device_, as_double(tiles.tile), as_double(tiles.classes),
                                                as_double(tiles.width), 1);
      return over(work.flops, reached * peak_rate(device_, dtype_of(unit_)));
    }
    if (work.multiply_adds > 0)
      return over(work.flops, kConvolutionRate * peak_rate(device_, dtype_of(unit_)));
    return over(work.flops, device_.rate(cluster::Precision::f32));
  }
  double operator()(const program::Updates& updates) const {
    double seconds = 0;
    for (const program::OperatorCall& call : updates.calls) seconds += (*this)(call);
    return seconds;
  }
  double operator()(const program::Copy&) const { return 0; }
  double operator()(const program::Combine&) const { return 0; }
  double operator()(const program::Exchange&) const { return 0; }

 private:
  // A product in the library's general kernel, with m, n, k and the outer points from its loops.
  double contraction(const plan::NodeView& node) const {
    double m = 1, n = 1, k = 1, points = 1;
    for (const plan::Loop& loop : node.op().signature(node).loops) {
      const bool in_a = loop.operands[0] >= 0, in_b = loop.operands[1] >= 0;
      double& side = loop.role != plan::Role::parallel ? k : in_a && in_b ? points : in_a ? m : n;
      side *= as_double(loop.size);
    }
    if (const auto fitted = fitted_product(device_, node.input_type(0).dtype, m, n, k, points))
      return *fitted;
    return over(2 * m * n * k * points,
                product_efficiency(device_, m, n, k, points) * peak_rate(device_, node.input_type(0).dtype));
  }

  const program::Program& program_;
  const Unit& unit_;
  const cluster::Device& device_;
};

}  // namespace

bool has_matrix_unit(const cluster::Device& device) {
  const double narrow = std::max(device.rate(cluster::Precision::bf16), device.rate(cluster::Precision::f16));
  return narrow > 3 * device.rate(cluster::Precision::f32);
}

bool was_measured(const cluster::Device& device) { return device.reach >= 1; }

double product_efficiency(const cluster::Device& device, double m, double n, double k, double points) {
  if (!has_matrix_unit(device)) return 1 / ((1 + kCoreHalf / m) * (1 + kCoreHalf / n) * (1 + kCoreHalf / k));
  const double tiles = std::ceil(m / kTile) * std::ceil(n / kTile) * points;
  // A few tiles are split along k so that every multiprocessor has work; that pays off down to some
  // 256 summands.
  const double parts = std::clamp(kMultiprocessors / tiles, 1.0, std::max(1.0, k / 256));
  const double rounds = tiles * parts / kMultiprocessors;
  const double waves = rounds / std::ceil(rounds);
  return device.reach * fill_of(m) * fill_of(n) * waves * k /
         (k + (was_measured(device) ? kMeasuredFill : kPipelineFill));
}

double attention_efficiency(const plan::NodeView& node) {
  constexpr double kHalfKeys = 450, kHalfWidth = 64, kWidth = 128;
  const ops::AttentionGeometry of = ops::attending(node);
  const double keys = of.pairs() / as_double(std::max<std::int64_t>(of.row_count(), 1)),
               width = as_double(ops::points_of(of.inner));
  return keys / (keys + kHalfKeys) *
         std::min(width / (width + kHalfWidth) * (kWidth + kHalfWidth) / kWidth, 1.0);
}

double best_efficiency(const cluster::Device& device) {
  if (!has_matrix_unit(device)) return 1;
  double best = device.reach;
  if (device.rates == nullptr) return best;
  constexpr double kMargin = 1.05;  // the rate is that of all but the fastest of the measured products
  for (const plan::DType dtype : {plan::DType::bf16, plan::DType::f8e4m3}) {
    if (!takes_rates(device, dtype)) continue;
    const auto* const table = device.rates->find(cluster::RateKind::product, rates_dtype(dtype));
    if (table != nullptr) best = std::max(best, kMargin * table->flops_per_second / peak_rate(device, dtype));
  }
  return best;
}

bool has_fitted_rate(const program::Program& program, const Unit& unit, const cluster::Device& device) {
  if (device.rates == nullptr) return false;
  if (std::holds_alternative<program::MatrixProduct>(unit.kernel))
    return takes_rates(device, dtype_of(unit)) &&
           device.rates->find(cluster::RateKind::product, rates_dtype(dtype_of(unit))) != nullptr;
  const auto* const call = std::get_if<program::OperatorCall>(&unit.kernel);
  return call != nullptr && ops::is_attention_operator(program.graph->view(call->node).op()) &&
         fitted_attention(device, program.graph->view(call->node)).has_value();
}

double best_convolution_efficiency(const cluster::Device& device) {
  using enum cluster::KernelKind;
  if (!(device.rate(convolution) > 0) || !(device.rate(convolution_gradient) > 0)) return kConvolutionRate;
  return std::max(device.rate(convolution), device.rate(convolution_gradient)) /
         peak_rate(device, plan::DType::bf16);
}

double unit_seconds(const program::Program& program, const Unit& unit, const cluster::Device& device) {
  if (std::holds_alternative<program::Exchange>(unit.kernel)) return 0;
  // Such a unit runs only in steps that are undone and repeated, about one in hundreds. Otherwise
  // it costs only its launch.
  if (unit.unless) return device.launch_seconds;
  const double compute = std::visit(Arithmetic(program, unit, device), unit.kernel);
  const double memory = over(moved_bytes(unit) + reread_bytes(program, unit, device),
                             device.reach * device.memory_bytes_per_second);
  const auto* const loop = std::get_if<program::RowLoop>(&unit.kernel);
  const int launches = loop != nullptr && !loop->accumulators.empty() && was_measured(device) ? 2 : 1;
  return launches * device.launch_seconds + layout_conversion_seconds(program, unit, device) +
         std::max(compute, memory);
}

}  // namespace weft::cost
