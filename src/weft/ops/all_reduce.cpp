// all-reduce: every rank gets the combination of what the ranks along a mesh axis hold.
//
//   y = x            partial(kind) on axis  ->  replicated
//   y, z = x, w      likewise, in one call
//
// priority=low: other exchanges along the axis need not wait for it.
// every=8: the sum of what the ranks would add in 8 steps is made afterwards, of what they made of it (run/); until
// then a rank goes on with its own addend, as many times as there are ranks.
#include <array>

#include "weft/ops/build.h"
#include "weft/ops/communication.h"
#include "weft/ops/local_exchange.h"
#include "weft/ops/loops.h"
#include "weft/ops/operators.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 4> kAllReduceAttributes = {
    {{"axis", AttributeKind::word},
     {"kind", AttributeKind::word, false, 0, "sum"},
     {"every", AttributeKind::integer, false, 1},
     {"priority", AttributeKind::word, false, 0, kNormalPriority}}};
constexpr std::size_t kAllReduceKind = 1, kAllReduceEvery = 2, kAllReducePriority = 3;

class AllReduce final : public Communication {
 public:
  std::string_view name() const override { return "all-reduce"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAllReduceAttributes; }
  std::size_t most_inputs() const override { return kMostMembers; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(check_priority(node.word(kAllReducePriority)));
    WEFT_TRY_STATUS(expect_between("every", node.integer(kAllReduceEvery), 1, kMostStepsBetweenSums));
    if (node.integer(kAllReduceEvery) > 1 &&
        plan::find_monoid(node.word(kAllReduceKind)) != plan::Monoid::sum)
      return user_error("all-reduce: only sums are made every few steps");
    return Communication::infer(node, results);
  }

  Exchange exchange(const NodeView& node) const override {
    return {.take = Exchange::Take::combined, .monoid = plan::find_monoid(node.word(kAllReduceKind))};
  }

  // Every addend of a sum has the sum's gradient. Which rank had the extreme is not known here.
  Status gradient(Gradient& g) const override {
    if (plan::find_monoid(g.node().word(kAllReduceKind)) != plan::Monoid::sum) return Operator::gradient(g);
    for (std::size_t i = 0; i < g.node().input_count(); ++i)
      if (g.wants(i) && g.of_result(i).valid()) g.set(i, g.of_result(i));
    return {};
  }
};

}  // namespace

std::int64_t steps_between_sums(const plan::NodeView& node) {
  return &node.op() == &all_reduce() ? node.integer(kAllReduceEvery) : 1;
}

const Operator& all_reduce() {
  static const AllReduce op;
  return op;
}

}  // namespace weft::ops
