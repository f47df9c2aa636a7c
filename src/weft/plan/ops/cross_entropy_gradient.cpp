// cross-entropy-gradient: from the gradient of the loss to that of the logits.
//
//   dlogits[.., c] = (softmax(logits)[.., c] - (1 - s) [c = label[..]] - s / size(c)) * dloss[..]
//
// One node, since its intermediate values (softmax, one-hot, difference) are each as large as the
// logits.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/labels.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/rows.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kCrossEntropyGradientAttributes = {
    {{"over", AttributeKind::index}, {"smoothing", AttributeKind::real, false, 0}}};
constexpr std::size_t kCrossEntropyGradientOver = 0, kCrossEntropyGradientSmoothing = 1;

class CrossEntropyGradient final : public OperatorOf<CrossEntropyGradient> {
 public:
  std::string_view name() const override { return "cross-entropy-gradient"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kCrossEntropyGradientAttributes; }
  std::size_t min_inputs() const override { return 3; }
  std::size_t max_inputs() const override { return 3; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY(rows, labelled_rows(node, node.symbol(kCrossEntropyGradientOver)));
    WEFT_TRY_STATUS(expect_smoothing(node.real(kCrossEntropyGradientSmoothing)));
    const plan::Type dloss = node.input_type(2);
    if (dloss.dtype != node.input_type(0).dtype || !std::ranges::equal(dloss.dims, rows))
      return user_error(fmt::format("operand 2 must be the gradient of the loss: expected {}, found {}",
                                    print(plan::Type{node.input_type(0).dtype, rows}, node.graph().symbols()),
                                    print(dloss, node.graph().symbols())));
    return results.add(node.input_type(0));
  }

  plan::Signature signature(const NodeView& node) const override {
    const Symbol over = node.symbol(kCrossEntropyGradientOver);
    return parallel_loops_except(node, {&over, 1});
  }

  plan::Work work(const NodeView& node) const override { return flops_each(node, 13); }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Labels<T> labels(at, at.node().symbol(kCrossEntropyGradientOver));
    const double smoothing = at.node().real(kCrossEntropyGradientSmoothing);
    const T sure = at.numbers.from(1 - smoothing);
    const T each = at.numbers.from(smoothing / static_cast<double>(labels.rows.columns.size()));
    for (std::size_t row = 0; row < labels.rows.starts.size(); ++row) {
      const std::int64_t label = labels.of(row);
      if (label < 0) continue;
      const T* x = at.input(0).data.data() + labels.rows.starts[row];
      T* dx = at.result(0).data.data() + labels.rows.starts[row];
      const T dloss = at.input(2).data[row];
      const auto [shift, total] = labels.exponentials(x);
      for (const std::int64_t column : labels.rows.columns)
        dx[column] =
            (at.numbers.divide(at.numbers.apply(Function::exp, x[column] - shift), total) - each) * dloss;
      dx[labels.rows.columns[label]] -= sure * dloss;
    }
  }
};

}  // namespace

const Operator& cross_entropy_gradient() {
  static const CrossEntropyGradient op;
  return op;
}

}  // namespace weft::ops
