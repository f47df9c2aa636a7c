// constant: one number everywhere.
//
//   y = value
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/sources.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kConstantAttributes = {
    {{"value", AttributeKind::real}, {"dtype", AttributeKind::dtype}}};
constexpr std::size_t kConstantValue = 0, kConstantDType = 1;

class Constant final : public OperatorOf<Constant> {
 public:
  std::string_view name() const override { return "constant"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kConstantAttributes; }
  std::size_t min_inputs() const override { return 0; }
  std::size_t max_inputs() const override { return 0; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const double value = node.real(kConstantValue);
    const plan::DType dtype = node.dtype(kConstantDType);
    if (is_integer(dtype) && (!std::isfinite(value) || std::trunc(value) != value))
      return user_error(
          fmt::format("a constant of {} must be an integer, found {}", plan::name(dtype), value));
    if (dtype == plan::DType::boolean && value != 0 && value != 1)
      return user_error(fmt::format("a constant of bool must be 0 or 1, found {}", value));
    return results.add(dtype, {});
  }

  plan::Signature signature(const NodeView&) const override { return {}; }
  plan::Work work(const NodeView& node) const override { return bytes_of(node); }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    at.result(0).data[0] = at.numbers.from(at.node().real(kConstantValue));
  }
};

}  // namespace

const Operator& constant() {
  static const Constant op;
  return op;
}

}  // namespace weft::ops
