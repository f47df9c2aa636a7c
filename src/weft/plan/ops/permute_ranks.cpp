// permute-ranks: every rank sends its value `by` ranks up along a mesh axis, wrapping around.
//
//   y of rank r = x of rank r - by      varying, partial or replicated on axis  ->  the same
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchanges.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kPermuteRanksAttributes = {
    {{"axis", AttributeKind::word}, {"by", AttributeKind::integer, false, 1}}};
constexpr std::size_t kPermuteRanksBy = 1;

class PermuteRanks final : public Communication {
 public:
  std::string_view name() const override { return "permute-ranks"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kPermuteRanksAttributes; }

  Exchange exchange(const NodeView& node) const override {
    return {.take = Exchange::Take::shifted, .rank = node.integer(kPermuteRanksBy)};
  }

  // The reverse permutation.
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    WEFT_TRY(value, add_permute_ranks(g.graph, g.of_result(), axis(node), -node.integer(kPermuteRanksBy)));
    g.set(0, value);
    return {};
  }
};

}  // namespace

const Operator& permute_ranks() {
  static const PermuteRanks op;
  return op;
}

}  // namespace weft::ops
