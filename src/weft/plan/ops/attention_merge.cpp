// attention-merge: combines attention over two sets of keys.
//
//   y0, l0   attention of the same queries to some keys, and its log-sums
//   y1, l1   to others
//
//   w0 = exp(l0 - max(l0, l1)),  w1 = exp(l1 - max(l0, l1))
//   y  = (w0 y0 + w1 y1) / (w0 + w1)            l = max(l0, l1) + log(w0 + w1)
//
// Associative, so blocks of keys may be merged in any order: in ring attention, ranks merge each
// block as it arrives. A query that sees no keys has y = 0 and l = -inf.
#include <algorithm>
#include <type_traits>

#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/sequences.h"

#include <fmt/format.h>

namespace weft::ops {
namespace {

using plan::NodeView;

class AttentionMerge final : public OperatorOf<AttentionMerge> {
 public:
  std::string_view name() const override { return "attention-merge"; }
  std::span<const plan::AttributeSpec> attributes() const override { return {}; }
  std::size_t min_inputs() const override { return 4; }
  std::size_t max_inputs() const override { return 4; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type y = node.input_type(0), sums = node.input_type(1);
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(same_type(node, 0, 2));
    WEFT_TRY_STATUS(same_type(node, 1, 3));
    const bool are_rows =
        sums.rank() <= y.rank() && std::equal(sums.dims.begin(), sums.dims.end(), y.dims.begin());
    if (sums.dtype != log_sum_dtype(y.dtype) || !are_rows)
      return user_error(fmt::format("log-sums are {}, one for each row of a result: found {} and {}",
                                    plan::name(log_sum_dtype(y.dtype)), print(y, node.graph().symbols()),
                                    print(sums, node.graph().symbols())));
    WEFT_TRY_STATUS(results.add(y));
    return results.add(sums);
  }

  plan::Signature signature(const NodeView& node) const override {
    return loops_by_name(node, [&](const plan::Loop& loop) {
      return node.input_type(1).has(loop.index) ? kParallel : kWhole;
    });
  }

  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    constexpr double kRow = 12, kElement = 3;
    work.flops = kRow * static_cast<double>(node.input_type(1).elements()) +
                 kElement * static_cast<double>(node.input_type(0).elements());
    return work;
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const std::size_t rows = at.input(1).data.size();
    const std::size_t each = rows == 0 ? 0 : at.input(0).data.size() / rows;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto [first, second, sum] = weights(at, at.input(1).data[row], at.input(3).data[row]);
      at.result(1).data[row] = sum;
      for (std::size_t i = row * each; i < (row + 1) * each; ++i)
        at.result(0).data[i] = first * at.input(0).data[i] + second * at.input(2).data[i];
    }
  }

 private:
  template <class T>
  struct Weights {
    T first, second, log_sum;
  };

  // Over the field, sums take the place of their logs (attention_geometry.h).
  template <class T>
  static Weights<T> weights(const Evaluation<T>& at, T first, T second) {
    const auto& n = at.numbers;
    if constexpr (std::is_same_v<T, Field>) {
      const T total = first + second;
      return {n.divide(first, total), n.divide(second, total), total};
    } else {
      const T peak = n.max(first, second);
      if (peak == n.least()) return {T(), T(), peak};
      const T a = n.apply(Function::exp, first - peak), b = n.apply(Function::exp, second - peak);
      const T total = a + b;
      return {n.divide(a, total), n.divide(b, total), peak + n.apply(Function::log, total)};
    }
  }
};

}  // namespace

const Operator& attention_merge() {
  static const AttentionMerge op;
  return op;
}

}  // namespace weft::ops
