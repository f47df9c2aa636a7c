// reduce: sums, averages or picks the extreme over the indices that are not kept.
//
//   y[to] = sum | mean | max | min  over all other indices of  x[..]
//   y[to] = largest                 likewise, of |x[..]|
//
// A mean is a sum divided by `count`. A plan that will be sliced states the count of the whole, so
// that the mean of a slice is an addend of the whole mean. If the count is left out, it is the
// number of elements that this node reduces, and those indices must not be sliced.
//
// A `peak` is the maximum of a row, subtracted before exp and added back later. It limits the range
// of floats and does not change the result. So the field, which cannot overflow, uses 0 for it, as
// it does inside softmax. Use `peak` for nothing else: a proof does not cover its value.
#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/plan/ops/arithmetic.h"
#include "weft/plan/ops/formula.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/sums.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 3> kReduceAttributes = {{{"kind", AttributeKind::word},
                                                                   {"to", AttributeKind::indices},
                                                                   {"count", AttributeKind::integer, false}}};
constexpr std::size_t kReduceKind = 0, kReduceTo = 1, kReduceCount = 2;

constexpr std::array<std::string_view, 6> kReduceKinds = {"sum", "mean", "max", "min", "peak", "largest"};

bool picks_largest(std::string_view kind) { return kind == "max" || kind == "peak" || kind == "largest"; }

class Reduce final : public OperatorOf<Reduce> {
 public:
  std::string_view name() const override { return "reduce"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kReduceAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const std::string_view kind = node.word(kReduceKind);
    if (std::ranges::find(kReduceKinds, kind) == kReduceKinds.end())
      return user_error(
          fmt::format("reduce kind must be sum, mean, max, min, peak or largest, found {}", kind),
          did_you_mean(kind, kReduceKinds));
    WEFT_TRY_STATUS(expect(node, 0, kind == "mean" ? Elements::real : Elements::number));
    if (node.integer(kReduceCount) < 0)
      return user_error(fmt::format("count must be at least 0, found {}", node.integer(kReduceCount)));
    WEFT_TRY(kept, pick(node.input_type(0).dims, node.indices(kReduceTo), node));
    return results.add(node.input_type(0).dtype, kept);
  }

  plan::Signature signature(const NodeView& node) const override {
    const std::string_view kind = node.word(kReduceKind);
    const bool cut_mean = kind == "mean" && node.integer(kReduceCount) == 0;
    const plan::Monoid monoid = picks_largest(kind) ? plan::Monoid::max
                                : kind == "min"     ? plan::Monoid::min
                                                    : plan::Monoid::sum;
    return loops_by_name(node, [&](const plan::Loop& loop) {
      if (loop.results[0] >= 0) return kParallel;
      return cut_mean ? kWhole : Behaviour{plan::Role::reduced, monoid};
    });
  }

  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    work.flops = static_cast<double>(node.input_type(0).elements());
    return work;
  }

  // sum: dx = dy    mean: dx = dy / count    max, min: dx = dy / ties where x = y, else 0    peak: 0
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const plan::Type x = node.input_type(0);
    Formula f(g.graph);
    if (node.word(kReduceKind) == "peak") return {};
    if (node.word(kReduceKind) == "largest")
      return user_error("a reduction to the largest size has no gradient");
    if (node.word(kReduceKind) == "sum") {
      g.set(0, f.sum(g.of_result(), x.dims));
    } else if (node.word(kReduceKind) == "mean") {
      const plan::ValueId total = f.number(static_cast<double>(count(node)), g.of_result());
      g.set(0, f.sum(f(div(), {g.of_result(), total}), x.dims));
    } else {
      const plan::ValueId chosen = f.cast(f(equal(), {node.input(0), node.result(0)}), x.dtype);
      const plan::ValueId ties = f.reduce("sum", chosen, node.indices(kReduceTo));
      g.set(0, f(mul(), {chosen, f(div(), {g.of_result(), ties})}));
    }
    return f.status();
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const NodeView& node = at.node();
    const plan::Type x = node.input_type(0);
    const std::string_view kind = node.word(kReduceKind);
    if (std::is_same_v<T, Field> && kind == "peak") return;  // results are zero-initialized
    const auto combine = [&](T a, T b) {
      return picks_largest(kind) ? at.numbers.max(a, b) : kind == "min" ? at.numbers.min(a, b) : a + b;
    };
    const auto taken = [&](T x_at) { return kind == "largest" ? at.numbers.max(x_at, -x_at) : x_at; };
    const auto rows = offsets_along(x, node.result_type(0).dims);
    const auto columns = offsets_along(x, without(x.dims, node.indices(kReduceTo)));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      T total = taken(at.input(0).data[rows[row]]);
      for (std::size_t column = 1; column < columns.size(); ++column)
        total = combine(total, taken(at.input(0).data[rows[row] + columns[column]]));
      at.result(0).data[row] =
          kind == "mean" ? at.numbers.divide(total, at.numbers.from_integer(count(node))) : total;
    }
  }

 private:
  static std::int64_t count(const NodeView& node) {
    if (node.integer(kReduceCount) > 0) return node.integer(kReduceCount);
    return points_of(without(node.input_type(0).dims, node.indices(kReduceTo)));
  }
};

}  // namespace

const Operator& reduce() {
  static const Reduce op;
  return op;
}

}  // namespace weft::ops
