// broadcast-from: every rank receives what one rank along a mesh axis holds.
//
//   y = x of rank `root`      varying on axis  ->  replicated
//
// It has no gradient: what the other ranks hold is dropped, which no global value can express.
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchanges.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kBroadcastFromAttributes = {
    {{"axis", AttributeKind::word}, {"root", AttributeKind::integer, false}}};
constexpr std::size_t kBroadcastFromRoot = 1;

class BroadcastFrom final : public Communication {
 public:
  std::string_view name() const override { return "broadcast-from"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kBroadcastFromAttributes; }

  Exchange exchange(const NodeView& node) const override {
    return {.take = Exchange::Take::root, .rank = node.integer(kBroadcastFromRoot)};
  }
};

}  // namespace

const Operator& broadcast_from() {
  static const BroadcastFrom op;
  return op;
}

}  // namespace weft::ops
