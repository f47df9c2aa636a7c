// slice-across: every rank along a mesh axis keeps its own block of an index, and nothing is sent.
//
//   y = x      replicated on axis  ->  sliced(along)
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchanges.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kSliceAcrossAttributes = {
    {{"axis", AttributeKind::word}, {"along", AttributeKind::index}}};
constexpr std::size_t kSliceAcrossAlong = 1;

class SliceAcross final : public Communication {
 public:
  std::string_view name() const override { return "slice-across"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kSliceAcrossAttributes; }

  Exchange exchange(const NodeView& node) const override {
    return {.take = Exchange::Take::own, .keep = node.symbol(kSliceAcrossAlong)};
  }

  // A replicated value has a replicated gradient, concatenated from the shares' gradients.
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY(value, add_all_gather(g.graph, g.of_result(), axis(node), node.symbol(kSliceAcrossAlong)));
    g.set(0, value);
    return {};
  }
};

}  // namespace

const Operator& slice_across() {
  static const SliceAcross op;
  return op;
}

}  // namespace weft::ops
