// weft/plan/ops/communication.h -- the common base of the operators that move values between ranks.
//
// In the global view each of them is the identity: it changes where a value is held, not what it
// is. On one device it does nothing. On a mesh it acts within each group of ranks along its axis,
// in two steps that its Exchange names: what a rank reads from its group, and which block of that
// it keeps.
//
//   operator         reads             keeps        from           to
//   all-reduce       the combination   all          partial(kind)  replicated
//   reduce-scatter   the combination   a block      partial(kind)  sliced(along)
//   all-gather       the shares        all          sliced(along)  replicated
//   all-to-all       the shares        a block      sliced(from)   sliced(to)
//   slice-across     its own value     a block      replicated     sliced(along)
//   addends          its own value     one row      partial(sum)   sliced(into)
//   halo             its neighbours'   its block    sliced(along)  sliced(along, before, after)
//                                      and borders
//   broadcast-from   the root's value  all          varying        replicated
//   permute-ranks    a neighbour's     all          not sliced     the same
//
// A varying value may be combined, sliced and passed on too: this acts on each rank's own value.
//
// An all-reduce may have several operands, a bucket: all are combined in one call, and result k
// belongs to operand k. They need to share only their dtype.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/plan/graph/exchange_kind.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/ops/operator.h"

namespace weft::ops {

struct Exchange {
  enum class Take : std::uint8_t { own, combined, joined, root, shifted, bordered, stacked };

  Take take = Take::own;
  plan::Monoid monoid = plan::Monoid::none;  // combined: how; none if the plan names no known kind
  Symbol join = {};                          // joined, bordered: the sliced index
  std::int64_t rank = 0;  // root: its rank; shifted: distance in ranks; stacked: number of rows
  Symbol keep = {};       // index of which a block is kept, or the new index; invalid: all is kept
  std::int64_t before = 0, after = 0;  // bordered: the widths of the borders
};

// The collective whose bytes determine the cost; nullopt if no bytes move, or their number is
// unknown.
std::optional<plan::ExchangeKind> collective_of(const Exchange& exchange);

class Communication : public OperatorOf<Communication> {
 public:
  virtual Exchange exchange(const plan::NodeView& node) const = 0;

  // The mesh axis along which it acts.
  std::string_view axis(const plan::NodeView& node) const { return node.word(0); }

  static constexpr std::size_t kMostMembers = 4096;  // per bucket

  std::size_t min_inputs() const override { return 1; }
  std::size_t max_inputs() const override { return 1; }
  Status infer(const plan::NodeView& node, plan::ResultTypes& results) const override;
  plan::Signature signature(const plan::NodeView& node) const override;
  plan::Work work(const plan::NodeView& node) const override;

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    for (std::size_t k = 0; k < at.input_count(); ++k) at.result(k).data = at.input(k).data;
  }
};

// The all-reduce's `every`: steps between communications; 1 for other operators.
std::int64_t steps_between_sums(const plan::NodeView& node);
inline constexpr std::int64_t kMaxStepsBetweenSums = 1'000'000'000;

// The all-reduce's `parts`: number of sequential calls; 1 for other operators.
std::int64_t parts_of(const plan::NodeView& node);
inline constexpr std::int64_t kMostParts = 4096;

// An all-reduce's attributes.
struct AllReduceOptions {
  std::string_view axis;
  std::string_view kind = "sum";
  std::int64_t every = 1, parts = 1;
  std::string_view priority = "normal";
};
// REQUIRES: node.op() is all_reduce()
AllReduceOptions all_reduce_options(const plan::NodeView& node);
Result<plan::NodeId> add_all_reduce(plan::Graph& graph, std::span<const plan::ValueId> inputs,
                                    const AllReduceOptions& how);

// Null if the operator is not a communication.
const Communication* find_communication(const plan::Operator& op);

}  // namespace weft::ops
