// scatter-add: adds elements into the rows given by positions: GROUP BY a value.
//
//   y[to] = sum over the other indices of  [positions[..] - begin = n] * x[..]      n is `along`, in `to`
//
// Elements whose position is outside 0 .. size-1 are dropped. A slice of n must know where it
// starts: `begin`.
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/formula.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/routing.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 4> kScatterAddAttributes = {
    {{"along", AttributeKind::index},
     {"size", AttributeKind::integer},
     {"to", AttributeKind::indices},
     {"begin", AttributeKind::integer, false}}};
constexpr std::size_t kScatterAddAlong = 0, kScatterAddSize = 1, kScatterAddTo = 2, kScatterAddBegin = 3;

class ScatterAdd final : public OperatorOf<ScatterAdd> {
 public:
  std::string_view name() const override { return "scatter-add"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kScatterAddAttributes; }
  std::size_t min_inputs() const override { return 2; }
  std::size_t max_inputs() const override { return 2; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const plan::Dim along{node.symbol(kScatterAddAlong), node.integer(kScatterAddSize)};
    WEFT_TRY_STATUS(expect(node, 0, Elements::integer));
    WEFT_TRY_STATUS(expect(node, 1, Elements::number));
    WEFT_TRY_STATUS(expect_between("begin", node.integer(kScatterAddBegin), 0, kLargestStep));
    WEFT_TRY(joined, join_inputs(node));
    if (contains(indices_of(joined), along.index))
      return user_error(
          fmt::format("operands must not have the index {} that they are added into", node.text(along.index)),
          "rename it");
    if (!contains(node.indices(kScatterAddTo), along.index))
      return user_error(
          fmt::format("the result must keep the index {} that is added into", node.text(along.index)));
    joined.push_back(along);
    WEFT_TRY(kept, pick(joined, node.indices(kScatterAddTo), node));
    return results.add(node.input_type(1).dtype, kept);
  }

  plan::Signature signature(const NodeView& node) const override {
    return loops_by_name(node, [&](const plan::Loop& loop) {
      return loop.index == node.symbol(kScatterAddAlong) ? kPlaced
             : loop.results[0] >= 0                      ? kParallel
                                                         : kSummed;
    });
  }

  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    work.flops = static_cast<double>(node.input_type(1).elements());
    return work;
  }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    Formula f(g.graph);
    const plan::ValueId rows = f.keep([&] {
      return add_gather(g.graph, node.input(0), g.of_result(), node.symbol(kScatterAddAlong),
                        node.integer(kScatterAddBegin));
    });
    g.set(1, f.sum(rows, node.input_type(1).dims));
    return f.status();
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const NodeView& node = at.node();
    const plan::Dim along{node.symbol(kScatterAddAlong), node.integer(kScatterAddSize)};
    const std::int64_t stride = strides_along(node.result_type(0), {&along, 1})[0];
    const DimList loops = *join_inputs(node);
    Walk walk(sizes_of(loops));
    for (const plan::Type& type : {node.input_type(0), node.input_type(1), node.result_type(0)})
      walk.track(strides_along(type, loops));
    do {
      const std::int64_t row =
          at.numbers.to_integer(at.input(0).data[walk.offset(0)]) - node.integer(kScatterAddBegin);
      if (row >= 0 && row < along.size)
        at.result(0).data[walk.offset(2) + row * stride] += at.input(1).data[walk.offset(1)];
    } while (walk.next());
  }
};

}  // namespace

const Operator& scatter_add() {
  static const ScatterAdd op;
  return op;
}

}  // namespace weft::ops
