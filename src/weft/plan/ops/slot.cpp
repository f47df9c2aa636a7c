// slot: the position of every token in the queue of the expert it chose.
//
//   y = expert * capacity + the number of earlier tokens of the row that chose the same expert
//   y = -1 if the queue is full, or the expert is outside 0 .. experts-1
//
// A row runs over the indices `over`, in that order. Gather and scatter-add ignore the -1.
#include <array>
#include <map>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/routing.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 3> kSlotAttributes = {{{"experts", AttributeKind::integer},
                                                                 {"capacity", AttributeKind::integer},
                                                                 {"over", AttributeKind::indices}}};
constexpr std::size_t kSlotExperts = 0, kSlotCapacity = 1, kSlotOver = 2;

class Slot final : public OperatorOf<Slot> {
 public:
  std::string_view name() const override { return "slot"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kSlotAttributes; }
  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    constexpr std::int64_t kLargestSlot = std::int64_t{1} << 31;  // slots are i32
    WEFT_TRY_STATUS(expect(node, 0, Elements::integer));
    WEFT_TRY_STATUS(expect_over(node, 0, node.indices(kSlotOver)));
    WEFT_TRY_STATUS(expect_between("experts", node.integer(kSlotExperts), 1, kLargestSlot));
    WEFT_TRY_STATUS(expect_between("capacity", node.integer(kSlotCapacity), 1,
                                   kLargestSlot / node.integer(kSlotExperts)));
    return results.add(plan::DType::i32, node.input_type(0).dims);
  }

  plan::Signature signature(const NodeView& node) const override {
    return parallel_loops_except(node, node.indices(kSlotOver));
  }

  plan::Work work(const NodeView& node) const override { return flops_each(node, 2); }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const Rows rows(at.node().input_type(0), at.node().indices(kSlotOver));
    const std::int64_t experts = at.node().integer(kSlotExperts), capacity = at.node().integer(kSlotCapacity);
    for (const std::int64_t start : rows.starts) {
      std::map<std::int64_t, std::int64_t> taken;  // slots used, by expert
      for (const std::int64_t column : rows.columns) {
        const std::int64_t expert = at.numbers.to_integer(at.input(0).data[start + column]);
        const bool fits = expert >= 0 && expert < experts && taken[expert] < capacity;
        at.result(0).data[start + column] =
            at.numbers.from_integer(fits ? expert * capacity + taken[expert]++ : -1);
      }
    }
  }
};

}  // namespace

const Operator& slot() {
  static const Slot op;
  return op;
}

}  // namespace weft::ops
