// all-to-all: every rank sends each rank along a mesh axis its block of another index.
//
//   y = x      sliced(from) on axis  ->  sliced(to)
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchanges.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 3> kAllToAllAttributes = {
    {{"axis", AttributeKind::word}, {"from", AttributeKind::index}, {"to", AttributeKind::index}}};
constexpr std::size_t kAllToAllFrom = 1, kAllToAllTo = 2;

class AllToAll final : public Communication {
 public:
  std::string_view name() const override { return "all-to-all"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAllToAllAttributes; }

  Exchange exchange(const NodeView& node) const override {
    return {
        .take = Exchange::Take::joined, .join = node.symbol(kAllToAllFrom), .keep = node.symbol(kAllToAllTo)};
  }

  // The reverse exchange.
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY(value, add_all_to_all(g.graph, g.of_result(), axis(node), node.symbol(kAllToAllTo),
                                   node.symbol(kAllToAllFrom)));
    g.set(0, value);
    return {};
  }
};

}  // namespace

const Operator& all_to_all() {
  static const AllToAll op;
  return op;
}

}  // namespace weft::ops
