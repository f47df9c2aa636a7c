// stop-gradient: the operand itself, with a gradient of zero.
//
//   y[..] = x[..]        dx = 0
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/moves.h"

namespace weft::ops {
namespace {

using plan::NodeView;

class StopGradient final : public OperatorOf<StopGradient> {
 public:
  std::string_view name() const override { return "stop-gradient"; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  bool is_view() const override { return true; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    return results.add(node.input_type(0));
  }

  plan::Signature signature(const NodeView& node) const override { return parallel_loops(node); }
  plan::Work work(const NodeView&) const override { return {}; }

  Status gradient(Gradient&) const override { return {}; }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    at.result(0).data = at.input(0).data;
  }
};

}  // namespace

const Operator& stop_gradient() {
  static const StopGradient op;
  return op;
}

}  // namespace weft::ops
