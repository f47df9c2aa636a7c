// gather: rows of a table, selected by position: a join on a value.
//
//   y[p.., t..] = table[along = positions[p..] - begin, t..]      0 where the position is outside
//
// Indices that positions and table share join by name. Along the table's rows it is a sum with at
// most one nonzero addend. So a slice of the table gives an addend of the result, if it knows its
// position: `begin`.
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/routing.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 2> kGatherAttributes = {
    {{"along", AttributeKind::index}, {"begin", AttributeKind::integer, false}}};
constexpr std::size_t kGatherAlong = 0, kGatherBegin = 1;

class Gather final : public OperatorOf<Gather> {
 public:
  std::string_view name() const override { return "gather"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kGatherAttributes; }
  std::size_t min_inputs() const override { return 2; }
  std::size_t max_inputs() const override { return 2; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    const Symbol along = node.symbol(kGatherAlong);
    const plan::Type table = node.input_type(1);
    WEFT_TRY_STATUS(expect(node, 0, Elements::integer));
    WEFT_TRY_STATUS(pick(table.dims, {&along, 1}, node));
    WEFT_TRY_STATUS(expect_between("begin", node.integer(kGatherBegin), 0, kLargestStep));
    if (node.input_type(0).has(along))
      return user_error(
          fmt::format("positions must not have the index {} that they pick from", node.text(along)),
          "rename one of the two");
    WEFT_TRY(joined, join_inputs(node));
    return results.add(table.dtype, without(joined, {&along, 1}));
  }

  plan::Signature signature(const NodeView& node) const override {
    return loops_by_name(node, [&](const plan::Loop& loop) {
      return loop.index == node.symbol(kGatherAlong) ? Behaviour{plan::Role::reduced, plan::Monoid::sum, true}
                                                     : kParallel;
    });
  }

  // Only the selected rows are read.
  plan::Work work(const NodeView& node) const override {
    plan::Work work = bytes_of(node);
    work.bytes_read = static_cast<double>(node.input_type(0).bytes()) + work.bytes_written;
    return work;
  }

  Status gradient(Gradient& g) const override {
    const NodeView& node = g.node();
    const plan::Type table = node.input_type(1);
    const plan::Dim along{node.symbol(kGatherAlong), table.size_of(node.symbol(kGatherAlong))};
    WEFT_TRY(value, add_scatter_add(g.graph, node.input(0), g.of_result(), along, indices_of(table.dims),
                                    node.integer(kGatherBegin)));
    g.set(1, value);
    return {};
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const NodeView& node = at.node();
    const plan::Type y = node.result_type(0), table = node.input_type(1);
    const plan::Dim along{node.symbol(kGatherAlong), table.size_of(node.symbol(kGatherAlong))};
    const std::int64_t stride = strides_along(table, {&along, 1})[0];
    const auto places = offsets_along(node.input_type(0), y.dims), rows = offsets_along(table, y.dims);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::int64_t row =
          at.numbers.to_integer(at.input(0).data[places[i]]) - node.integer(kGatherBegin);
      if (row >= 0 && row < along.size) at.result(0).data[i] = at.input(1).data[rows[i] + row * stride];
    }
  }
};

}  // namespace

const Operator& gather() {
  static const Gather op;
  return op;
}

}  // namespace weft::ops
