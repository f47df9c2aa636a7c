// batch-norm: every channel shifted and scaled to mean 0 and variance 1.
//
//   mode=train   y = (x - m) * rstd   with m, v the mean and biased variance of the batch
//                next-mean = (1 - momentum) * mean + momentum * m, likewise next-variance with the
//                unbiased v (the biased one where the batch has a single element)
//   mode=infer   y = (x - mean) * rstd with the running mean and variance, which stay unchanged
//
//   rstd = 1 / sqrt(v + epsilon)
//
// Statistics are taken over the indices `over`; the other indices are the channel. Only x has a
// gradient.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/arithmetic.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/normalization.h"
#include "weft/plan/ops/rows.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 4> kBatchNormAttributes = {
    {{"over", AttributeKind::indices},
     {"epsilon", AttributeKind::real, false, 1e-5},
     {"momentum", AttributeKind::real, false, 0.1},
     {"mode", AttributeKind::word, false, 0, "train"}}};
constexpr std::size_t kBatchNormOver = 0, kBatchNormEpsilon = 1, kBatchNormMomentum = 2, kBatchNormMode = 3;

class BatchNorm final : public OperatorOf<BatchNorm> {
 public:
  std::string_view name() const override { return "batch-norm"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kBatchNormAttributes; }
  std::size_t min_inputs() const override { return 3; }
  std::size_t max_inputs() const override { return 3; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type x = node.input_type(0);
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    // Running statistics may have a wider dtype than x.
    if (node.input_type(1).dtype != statistics_dtype(x.dtype) ||
        node.input_type(2).dtype != statistics_dtype(x.dtype))
      WEFT_TRY_STATUS(same_dtype(node));
    WEFT_TRY_STATUS(expect_over(node, 0, node.indices(kBatchNormOver)));
    if (node.word(kBatchNormMode) != "train" && node.word(kBatchNormMode) != "infer")
      return user_error(
          fmt::format("batch-norm mode must be train or infer, found {}", node.word(kBatchNormMode)));
    const DimList channel = without(x.dims, node.indices(kBatchNormOver));
    for (const std::size_t i : {1u, 2u}) {
      const std::span<const plan::Dim> found = node.input_type(i).dims;
      if (!std::ranges::is_permutation(channel, found))
        return user_error(
            fmt::format("operand {} must have the indices of x that are not averaged: expected {}, found {}",
                        i, print(plan::Type{x.dtype, channel}, node.graph().symbols()),
                        print(node.input_type(i), node.graph().symbols())));
    }
    WEFT_TRY_STATUS(results.add(x));
    WEFT_TRY_STATUS(results.add(node.input_type(1)));
    WEFT_TRY_STATUS(results.add(node.input_type(2)));
    return results.add(statistics_dtype(x.dtype), channel);
  }

  plan::Signature signature(const NodeView& node) const override {
    return parallel_loops_except(node, node.indices(kBatchNormOver));
  }

  plan::Work work(const NodeView& node) const override { return flops_each(node, trains(node) ? 6 : 2); }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY_STATUS(only_through_first(g));
    if (g.wants(1) || g.wants(2)) return user_error("batch-norm has no gradient for its running statistics");
    const plan::ValueId dy = g.of_result(), y = node.result(0), rstd = node.result(3);
    Formula f(g.graph);
    g.set(0, trains(node) ? channel_gradient(f, node.input_type(0), node.indices(kBatchNormOver), dy, y, rstd)
                          : f(mul(), {dy, f.cast(rstd, node.input_type(0).dtype)}));
    return f.status();
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const NodeView& node = at.node();
    const auto& n = at.numbers;
    const Rows rows(node.input_type(0), node.indices(kBatchNormOver));
    const DimList channel = without(node.input_type(0).dims, node.indices(kBatchNormOver));
    const auto means = offsets_along(node.input_type(1), channel),
               variances = offsets_along(node.input_type(2), channel);
    const T epsilon = n.from(node.real(kBatchNormEpsilon)), momentum = n.from(node.real(kBatchNormMomentum)),
            one = n.from(1);
    const auto count = static_cast<std::int64_t>(rows.columns.size());
    const T unbias = count > 1 ? n.divide(n.from_integer(count), n.from_integer(count - 1)) : one;

    for (std::size_t row = 0; row < rows.starts.size(); ++row) {
      const T* x = at.input(0).data.data() + rows.starts[row];
      T* y = at.result(0).data.data() + rows.starts[row];
      const Moments<T> running = {at.input(1).data[means[row]], at.input(2).data[variances[row]]};
      Moments<T> used = running, next = running;
      if (trains(node)) {
        used = moments(n, x, rows.columns);
        next.mean = (one - momentum) * running.mean + momentum * used.mean;
        next.variance = (one - momentum) * running.variance + momentum * used.variance * unbias;
      }
      const T rstd = n.apply(Function::rsqrt, used.variance + epsilon);
      for (const std::int64_t column : rows.columns) y[column] = (x[column] - used.mean) * rstd;
      at.result(1).data[means[row]] = next.mean;
      at.result(2).data[variances[row]] = next.variance;
      at.result(3).data[row] = rstd;
    }
  }

 private:
  static bool trains(const NodeView& node) { return node.word(kBatchNormMode) == "train"; }
};

}  // namespace

const Operator& batch_norm() {
  static const BatchNorm op;
  return op;
}

}  // namespace weft::ops
