// all-reduce: every rank gets the combination of what the ranks along a mesh axis hold.
//
//   y = x      partial(kind) on axis  ->  replicated
#include <array>

#include "weft/ops/build.h"
#include "weft/ops/communication.h"
#include "weft/ops/operators.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kAllReduceAttributes = {
    {{"axis", AttributeKind::word}, {"kind", AttributeKind::word, false, 0, "sum"}}};
constexpr std::size_t kAllReduceKind = 1;

class AllReduce final : public Communication {
 public:
  std::string_view name() const override { return "all-reduce"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAllReduceAttributes; }

  Exchange exchange(const NodeView& node) const override {
    return {.take = Exchange::Take::combined, .monoid = plan::find_monoid(node.word(kAllReduceKind))};
  }

  // Every addend of a sum has the sum's gradient. Which rank had the extreme is not known here.
  Status gradient(Gradient& g) const override {
    if (plan::find_monoid(g.node().word(kAllReduceKind)) != plan::Monoid::sum) return Operator::gradient(g);
    g.set(0, g.of_result());
    return {};
  }
};

}  // namespace

const Operator& all_reduce() {
  static const AllReduce op;
  return op;
}

}  // namespace weft::ops
