// position: the position of each element along an index.
//
//   y[along] = begin + 0, 1, .., size-1
//
// A slice must know where it starts: its `begin`.
#include <array>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/sources.h"

namespace weft::ops {
namespace {

using plan::AttributeKind;
using plan::NodeView;

constexpr std::array<plan::AttributeSpec, 3> kPositionAttributes = {
    {{"along", AttributeKind::index},
     {"size", AttributeKind::integer},
     {"begin", AttributeKind::integer, false}}};
constexpr std::size_t kPositionAlong = 0, kPositionSize = 1, kPositionBegin = 2;

class Position final : public OperatorOf<Position> {
 public:
  std::string_view name() const override { return "position"; }
  std::span<const plan::AttributeSpec> attributes() const override { return kPositionAttributes; }
  std::size_t min_inputs() const override { return 0; }
  std::size_t max_inputs() const override { return 0; }

  Status infer(const NodeView& node, plan::ResultTypes& results) const override {
    constexpr std::int64_t kLargest = std::int64_t{1} << 31;  // the last position must fit in an i32
    WEFT_TRY_STATUS(expect_between("size", node.integer(kPositionSize), 1, kLargest));
    WEFT_TRY_STATUS(
        expect_between("begin", node.integer(kPositionBegin), 0, kLargest - node.integer(kPositionSize)));
    const plan::Dim dim{node.symbol(kPositionAlong), node.integer(kPositionSize)};
    return results.add(plan::DType::i32, {&dim, 1});
  }

  plan::Signature signature(const NodeView& node) const override {
    return loops_by_name(node, [](const plan::Loop&) { return kPlaced; });
  }

  plan::Work work(const NodeView& node) const override { return bytes_of(node); }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    std::int64_t next = at.node().integer(kPositionBegin);
    for (T& element : at.result(0).data) element = at.numbers.from_integer(next++);
  }
};

}  // namespace

const Operator& position() {
  static const Position op;
  return op;
}

}  // namespace weft::ops
