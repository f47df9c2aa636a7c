// all-reduce: every rank receives the combination of what the ranks along a mesh axis hold.
//
//   y = x            partial(kind) on axis  ->  replicated
//   y, z = x, w      likewise, in one call
//
// parts=4: split into four calls in sequence, so that readers of the first can start early
// (program/). priority=low: other exchanges along the axis need not wait for it. every=8:
// communicate only every 8 steps, and then combine the results of those steps instead of their
// addends (run/). In between, a rank uses its own addend times the number of ranks.
#include <array>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchanges.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 5> kAllReduceAttributes = {
    {{"axis", AttributeKind::word},
     {"kind", AttributeKind::word, false, 0, "sum"},
     {"every", AttributeKind::integer, false, 1},
     {"parts", AttributeKind::integer, false, 1},
     {"priority", AttributeKind::word, false, 0, kNormalPriority}}};
constexpr std::size_t kAllReduceKind = 1, kAllReduceEvery = 2, kAllReduceParts = 3, kAllReducePriority = 4;

class AllReduce final : public Communication {
 public:
  std::string_view name() const override { return "all-reduce"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kAllReduceAttributes; }
  std::size_t max_inputs() const override { return kMostMembers; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    WEFT_TRY_STATUS(check_priority(node.word(kAllReducePriority)));
    WEFT_TRY_STATUS(expect_between("parts", node.integer(kAllReduceParts), 1, kMostParts));
    WEFT_TRY_STATUS(expect_between("every", node.integer(kAllReduceEvery), 1, kMaxStepsBetweenSums));
    if (node.integer(kAllReduceEvery) > 1 &&
        plan::find_monoid(node.word(kAllReduceKind)) != plan::Monoid::sum)
      return user_error("all-reduce: every needs kind=sum");
    return Communication::infer(node, results);
  }

  Exchange exchange(const NodeView& node) const override {
    return {.take = Exchange::Take::combined, .monoid = plan::find_monoid(node.word(kAllReduceKind))};
  }

  // Every addend of a sum has the sum's gradient. For max and min, the rank that had the extreme is
  // unknown here.
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

std::int64_t parts_of(const plan::NodeView& node) {
  return &node.op() == &all_reduce() ? node.integer(kAllReduceParts) : 1;
}

Result<plan::NodeId> add_all_reduce(plan::Graph& graph, std::span<const plan::ValueId> inputs,
                                    const AllReduceOptions& how) {
  const plan::AttributeValue attributes[] = {graph.symbol(how.axis), graph.symbol(how.kind), how.every,
                                             how.parts, graph.symbol(how.priority)};
  return graph.add(all_reduce(), inputs, attributes);
}

AllReduceOptions all_reduce_options(const plan::NodeView& node) {
  return {node.word(0), node.word(kAllReduceKind), node.integer(kAllReduceEvery),
          node.integer(kAllReduceParts), node.word(kAllReducePriority)};
}

const Operator& all_reduce() {
  static const AllReduce op;
  return op;
}

}  // namespace weft::ops
