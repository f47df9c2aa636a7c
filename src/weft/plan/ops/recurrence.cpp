// recurrence: a first-order linear recurrence along an index.
//
//   y[.., t, ..] = decay[.., t, ..] * y[.., t - 1, ..] + x[.., t, ..]      y before the first is zero
//
// decay may lack indices of x, including the one along which it runs: with the scalar 1 it is a
// cumulative sum. reverse=1 runs from the last to the first. The gradient of each direction is the
// other one.
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/sequences.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kRecurrenceAttributes = {
    {{"along", AttributeKind::index}, {"reverse", AttributeKind::integer, false}}};
constexpr std::size_t kRecurrenceAlong = 0, kRecurrenceReverse = 1;

class Recurrence final : public OperatorOf<Recurrence> {
 public:
  std::string_view name() const override { return "recurrence"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kRecurrenceAttributes; }
  std::size_t min_inputs() const override { return 2; }
  std::size_t max_inputs() const override { return 2; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Type decay = node.input_type(0), x = node.input_type(1);
    const Symbol along = node.symbol(kRecurrenceAlong);
    WEFT_TRY_STATUS(expect(node, 0, Elements::number));
    WEFT_TRY_STATUS(same_dtype(node));
    WEFT_TRY_STATUS(expect_over(node, 1, {&along, 1}));
    WEFT_TRY_STATUS(expect_between("reverse", node.integer(kRecurrenceReverse), 0, 1));
    WEFT_TRY_STATUS(join_inputs(node));
    for (const plan::Dim& dim : decay.dims)
      if (!x.has(dim.index))
        return user_error(
            fmt::format("the decay of a recurrence must have only indices of x, found {} "
                        "and {}",
                        print_indices(decay.dims, node.graph().symbols()),
                        print_indices(x.dims, node.graph().symbols())));
    return results.add(x);
  }

  plan::Signature signature(const NodeView& node) const override {
    const Symbol along = node.symbol(kRecurrenceAlong);
    return parallel_loops_except(node, {&along, 1});
  }

  plan::Work work(const NodeView& node) const override { return flops_each(node, 2); }

  // dx is the same recurrence in the other direction, where t uses the decay of the next element.
  // ddecay[t] is dx[t] times the previous element of y.
  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const plan::ValueId decay = node.input(0), y = node.result(0);
    DimList to(node.input_type(0).dims);  // the decay's dims, copied since the plan grows below
    const bool decays_by_place = node.input_type(0).has(node.symbol(kRecurrenceAlong));
    const Symbol along = node.symbol(kRecurrenceAlong);
    const bool reverse = node.integer(kRecurrenceReverse) != 0;
    const std::int64_t size = node.input_type(1).size_of(along);
    if (size == 1) {  // no element has a predecessor
      g.set(1, g.of_result());
      if (!g.wants(0)) return {};
      WEFT_TRY(zero, add_constant(g.graph, 0, g.graph.type(decay).dtype));
      WEFT_TRY(slope, add_broadcast(g.graph, zero, to));
      g.set(0, slope);
      return {};
    }
    plan::ValueId next = decay;
    if (decays_by_place) {
      WEFT_TRY(rest, add_slice(g.graph, decay, along, reverse ? 0 : 1, reverse ? size - 1 : size));
      WEFT_TRY(moved, add_pad(g.graph, rest, along, reverse ? 1 : 0, reverse ? 0 : 1));
      next = moved;
    }
    WEFT_TRY(dx, add_recurrence(g.graph, next, g.of_result(), along, !reverse));
    g.set(1, dx);
    if (!g.wants(0)) return {};
    // The derivative for the first element is zero, so only the others are multiplied.
    WEFT_TRY(later, add_slice(g.graph, dx, along, reverse ? 0 : 1, reverse ? size - 1 : size));
    WEFT_TRY(earlier, add_slice(g.graph, y, along, reverse ? 1 : 0, reverse ? size : size - 1));
    for (plan::Dim& dim : to)
      if (dim.index == along) dim.size = size - 1;
    WEFT_TRY(slope, add_contract_spread(g.graph, {later, earlier}, to));
    if (decays_by_place) {
      WEFT_TRY(whole, add_pad(g.graph, slope, along, reverse ? 0 : 1, reverse ? 1 : 0));
      slope = whole;
    }
    g.set(0, slope);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const NodeView& node = at.node();
    const plan::Type x = node.input_type(1);
    const Symbol along = node.symbol(kRecurrenceAlong);
    const auto place = static_cast<std::size_t>(x.position(along));
    const std::vector<std::int64_t> in_decay = strides_along(node.input_type(0), x.dims);
    const std::vector<std::int64_t> in_x = strides_along(x, x.dims);
    const std::int64_t size = x.dims[place].size;
    std::vector<std::int64_t> rows = sizes_of(x.dims);
    rows[place] = 1;
    Walk walk(rows);
    walk.track(in_decay);
    walk.track(in_x);
    do {
      T last = at.numbers.from_integer(0);
      for (std::int64_t step = 0; step < size; ++step) {
        const std::int64_t t = node.integer(kRecurrenceReverse) != 0 ? size - 1 - step : step;
        const std::int64_t here = walk.offset(1) + t * in_x[place];
        last = at.input(0).data[walk.offset(0) + t * in_decay[place]] * last + at.input(1).data[here];
        at.result(0).data[here] = last;
      }
    } while (walk.next());
  }
};

}  // namespace

const Operator& recurrence() {
  static const Recurrence op;
  return op;
}

}  // namespace weft::ops
