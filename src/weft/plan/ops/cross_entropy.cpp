// cross-entropy: the cross-entropy of a row of logits and its label.
//
//   loss[..] = log(sum over c of exp(logits[.., c])) - logits[.., label]
//
// With `smoothing` s the label has 1 - s of the weight, and all classes share s evenly.
//
//   loss[..] = log(sum over c of exp(logits[.., c]))
//              - (1 - s) logits[.., label] - s mean over c of logits[.., c]
//
// A label outside 0 .. size(c)-1 marks a row to be ignored: its loss and its gradient are zero.
#include <array>

#include "weft/plan/ops/formula.h"
#include "weft/plan/ops/labels.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/rows.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kCrossEntropyAttributes = {
    {{"over", AttributeKind::index}, {"smoothing", AttributeKind::real, false, 0}}};
constexpr std::size_t kCrossEntropyOver = 0, kCrossEntropySmoothing = 1;

class CrossEntropy final : public OperatorOf<CrossEntropy> {
 public:
  std::string_view name() const override { return "cross-entropy"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kCrossEntropyAttributes; }
  std::size_t min_inputs() const override { return 2; }
  std::size_t max_inputs() const override { return 2; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY(rows, labelled_rows(node, node.symbol(kCrossEntropyOver)));
    WEFT_TRY_STATUS(expect_smoothing(node.real(kCrossEntropySmoothing)));
    return results.add(node.input_type(0).dtype, rows);
  }

  plan::Signature signature(const NodeView& node) const override {
    const Symbol over = node.symbol(kCrossEntropyOver);
    return parallel_loops_except(node, {&over, 1});
  }

  // An exp, a maximum, a subtraction and a sum per logit.
  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    work.flops = 11 * static_cast<double>(node.input_type(0).elements());
    return work;
  }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const std::array<plan::AttributeValue, 2> attributes = {node.symbol(kCrossEntropyOver),
                                                            node.real(kCrossEntropySmoothing)};
    const std::initializer_list<plan::ValueId> operands = {node.input(0), node.input(1), g.of_result()};
    WEFT_TRY(value, g.graph.add_value(cross_entropy_gradient(), operands, attributes));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Labels<T> labels(at, at.node().symbol(kCrossEntropyOver));
    for (std::size_t row = 0; row < labels.rows.starts.size(); ++row) {
      const std::int64_t label = labels.of(row);
      if (label < 0) continue;
      const T* x = at.input(0).data.data() + labels.rows.starts[row];
      const auto [shift, total] = labels.exponentials(x);
      at.result(0).data[row] = shift + at.numbers.apply(Function::log, total) -
                               labels.wanted(x, label, at.node().real(kCrossEntropySmoothing));
    }
  }
};

}  // namespace

const Operator& cross_entropy() {
  static const CrossEntropy op;
  return op;
}

}  // namespace weft::ops
