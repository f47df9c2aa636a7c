// labelled: which rows have a valid label, and so count in a mean of cross-entropies.
//
//   y[..] = 1  where  0 <= label[..] < classes,  else 0
//
// Other labels mark rows to be ignored, as in cross-entropy.
#include <array>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/rows.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kLabelledAttributes = {
    {{"classes", AttributeKind::integer}, {"dtype", AttributeKind::dtype}}};
constexpr std::size_t kLabelledClasses = 0, kLabelledDtype = 1;

class Labelled final : public OperatorOf<Labelled> {
 public:
  std::string_view name() const override { return "labelled"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kLabelledAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(expect(node, 0, Elements::integer));
    WEFT_TRY_STATUS(expect_between("classes", node.integer(kLabelledClasses), 1, kLargestStep));
    return results.add(node.dtype(kLabelledDtype), node.input_type(0).dims);
  }

  plan::Signature signature(const NodeView& node) const override { return parallel_loops(node); }
  plan::Work work(const NodeView& node) const override { return flops_each(node, 2); }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const std::int64_t classes = at.node().integer(kLabelledClasses);
    for (std::size_t i = 0; i < at.input(0).data.size(); ++i) {
      const std::int64_t label = at.numbers.to_integer(at.input(0).data[i]);
      at.result(0).data[i] = at.numbers.from_integer(label >= 0 && label < classes);
    }
  }
};

}  // namespace

const Operator& labelled() {
  static const Labelled op;
  return op;
}

}  // namespace weft::ops
