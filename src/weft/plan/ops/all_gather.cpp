// all-gather: every rank receives the shares of all ranks along a mesh axis, concatenated.
//
//   y = x      sliced(along) on axis  ->  replicated
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchanges.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kAllGatherAttributes = {
    {{"axis", AttributeKind::word}, {"along", AttributeKind::index}}};
constexpr std::size_t kAllGatherAlong = 1;

class AllGather final : public Communication {
 public:
  std::string_view name() const override { return "all-gather"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAllGatherAttributes; }

  Exchange exchange(const NodeView& node) const override {
    return {.take = Exchange::Take::joined, .join = node.symbol(kAllGatherAlong)};
  }

  // A replicated value has a replicated gradient. The gradient of a share is its block of that.
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY(value, add_slice_across(g.graph, g.of_result(), axis(node), node.symbol(kAllGatherAlong)));
    g.set(0, value);
    return {};
  }
};

}  // namespace

const Operator& all_gather() {
  static const AllGather op;
  return op;
}

}  // namespace weft::ops
