// softmax: the softmax of every row.
//
//   y = exp(x) / sum over `over` of exp(x)
//
// Floats first subtract the row's maximum, which only limits the range of exp. A row with only -inf
// becomes zeros.
#include <array>
#include <limits>
#include <type_traits>

#include "weft/plan/ops/arithmetic.h"
#include "weft/plan/ops/formula.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/rows.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 1> kSoftmaxAttributes = {{{"over", AttributeKind::indices}}};
constexpr std::size_t kSoftmaxOver = 0;

class Softmax final : public OperatorOf<Softmax> {
 public:
  std::string_view name() const override { return "softmax"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kSoftmaxAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::real));
    WEFT_TRY_STATUS(expect_over(node, 0, node.indices(kSoftmaxOver)));
    return results.add(node.input_type(0));
  }

  plan::Signature signature(const NodeView& node) const override {
    return parallel_loops_except(node, node.indices(kSoftmaxOver));
  }

  // Per element: an exp, a maximum, a subtraction, a sum and a division.
  plan::Work work(const NodeView& node) const override { return flops_each(node, 12); }

  // dx = y * (dy - sum over `over` of dy * y)
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const plan::ValueId y = node.result(0), dy = g.of_result();
    Formula f(g.graph);
    const plan::ValueId along_y =
        f.product({dy, y}, without(node.result_type(0).dims, node.indices(kSoftmaxOver)));
    g.set(0, f(mul(), {y, f(sub(), {dy, along_y})}));
    return f.status();
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Rows rows(at.node().input_type(0), at.node().indices(kSoftmaxOver));
    for (const std::int64_t start : rows.starts) {
      const T* x = at.input(0).data.data() + start;
      T* y = at.result(0).data.data() + start;
      T shift = T();
      if constexpr (!std::is_same_v<T, Field>) {
        shift = x[rows.columns[0]];
        for (const std::int64_t column : rows.columns) shift = at.numbers.max(shift, x[column]);
        if (shift == at.numbers.least()) continue;  // results are zero-initialized
      }
      T total = T();
      for (const std::int64_t column : rows.columns)
        total += y[column] = at.numbers.apply(Function::exp, x[column] - shift);
      for (const std::int64_t column : rows.columns) y[column] = at.numbers.divide(y[column], total);
    }
  }
};

}  // namespace

const Operator& softmax() {
  static const Softmax op;
  return op;
}

}  // namespace weft::ops
