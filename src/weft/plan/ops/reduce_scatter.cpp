// reduce-scatter: every rank receives its block of the combination of what the ranks along a mesh
// axis hold.
//
//   y = x      partial(kind) on axis  ->  sliced(along)
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchanges.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 3> kReduceScatterAttributes = {
    {{"axis", AttributeKind::word},
     {"along", AttributeKind::index},
     {"kind", AttributeKind::word, false, 0, "sum"}}};
constexpr std::size_t kReduceScatterAlong = 1, kReduceScatterKind = 2;

class ReduceScatter final : public Communication {
 public:
  std::string_view name() const override { return "reduce-scatter"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kReduceScatterAttributes; }

  Exchange exchange(const NodeView& node) const override {
    return {.take = Exchange::Take::combined,
            .monoid = plan::find_monoid(node.word(kReduceScatterKind)),
            .keep = node.symbol(kReduceScatterAlong)};
  }

  // Every addend of a sum has the whole gradient of the sum. For max and min, the rank that had the
  // extreme is unknown here.
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    if (plan::find_monoid(node.word(kReduceScatterKind)) != plan::Monoid::sum) return Operator::gradient(g);
    WEFT_TRY(value, add_all_gather(g.graph, g.of_result(), axis(node), node.symbol(kReduceScatterAlong)));
    g.set(0, value);
    return {};
  }
};

}  // namespace

const Operator& reduce_scatter() {
  static const ReduceScatter op;
  return op;
}

}  // namespace weft::ops
