// halo: every rank receives the border elements around its block that its windows read.
//
//   y = x      sliced(along) on axis  ->  sliced(along, before, after)
//
// Borders wider than a block reach beyond the adjacent blocks. Borders end at the ends of the
// index.
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchanges.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 4> kHaloAttributes = {{{"axis", AttributeKind::word},
                                                                 {"along", AttributeKind::index},
                                                                 {"before", AttributeKind::integer, false},
                                                                 {"after", AttributeKind::integer, false}}};
constexpr std::size_t kHaloAlong = 1, kHaloBefore = 2, kHaloAfter = 3;

class Halo final : public Communication {
 public:
  std::string_view name() const override { return "halo"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kHaloAttributes; }

  Exchange exchange(const NodeView& node) const override {
    return {.take = Exchange::Take::bordered,
            .join = node.symbol(kHaloAlong),
            .before = node.integer(kHaloBefore),
            .after = node.integer(kHaloAfter)};
  }

  // Readers of borders compute the complete gradient of each rank's own block, so no addends of
  // other ranks are missing.
  Status gradient(Gradient& g) const override {
    g.set(0, g.of_result());
    return {};
  }
};

}  // namespace

const Operator& halo() {
  static const Halo op;
  return op;
}

}  // namespace weft::ops
