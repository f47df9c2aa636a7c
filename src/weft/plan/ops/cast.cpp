// cast: the same numbers in another dtype.
//
//   y = x      to an integer: truncated;  to bool: whether x is not zero
//
// The reference semantics do not round to a narrower real: they are exact where kernels are not.
// Only Rounded (rounded.h) rounds, since it exists to bound rounding errors.
#include <array>
#include <type_traits>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/moves.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 1> kCastAttributes = {{{"to", AttributeKind::dtype}}};
constexpr std::size_t kCastTo = 0;

class Cast final : public OperatorOf<Cast> {
 public:
  std::string_view name() const override { return "cast"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kCastAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    return results.add(node.dtype(kCastTo), node.input_type(0).dims);
  }

  plan::Signature signature(const NodeView& node) const override { return parallel_loops(node); }
  plan::Work work(const NodeView& node) const override { return bytes_of(node); }

  Status gradient(Gradient& g) const override {
    WEFT_TRY(value, add_cast(g.graph, g.of_result(), g.node().input_type(0).dtype));
    g.set(0, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const plan::DType from = at.node().input_type(0).dtype, to = at.node().dtype(kCastTo);
    for (std::size_t i = 0; i < at.input(0).data.size(); ++i) {
      const T x = at.input(0).data[i];
      T& y = at.result(0).data[i];
      if (to == plan::DType::boolean)
        y = at.numbers.equal(x, at.numbers.from(0)) ? at.numbers.from(0) : at.numbers.from(1);
      else if (is_integer(to) && is_real(from))
        y = at.numbers.apply(Function::truncate, x);
      else
        y = x;
      if constexpr (std::is_same_v<T, Rounded>) y = at.numbers.converted(y, to);
    }
  }
};

}  // namespace

const Operator& cast() {
  static const Cast op;
  return op;
}

}  // namespace weft::ops
