// weft/plan/ops/communication.h -- what the operators that move values between ranks share.
//
// In the global view each of them is the identity: it changes where a value is held, not what it is, and on
// one device it does nothing. On a mesh it acts in the groups of ranks along its axis, in two steps that its
// Exchange names: what a rank takes of what its group holds, and which block of that it keeps.
//
//   operator         takes             keeps        from           to
//   all-reduce       the combination   all          partial(kind)  replicated
//   reduce-scatter   the combination   a block      partial(kind)  sliced(along)
//   all-gather       the shares        all          sliced(along)  replicated
//   all-to-all       the shares        a block      sliced(from)   sliced(to)
//   slice-across     its own           a block      replicated     sliced(along)
//   addends          its own           a row of     partial(sum)   sliced(into)
//                                      its own
//   halo             its neighbours'   its block    sliced(along)  sliced(along, before, after)
//                                      and borders
//   broadcast-from   the root's        all          varying        replicated
//   permute-ranks    a neighbour's     all          what it was    the same
//
// A varying value may be combined, cut and passed on too: it is then the ranks' own values that are.
//
// An all-reduce may have several operands, a bucket: what they hold is combined in one call, each result is that
// of the operand in its place, and they need nothing in common but what their elements are.
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
  plan::Monoid monoid = plan::Monoid::none;  // of combined; none where the plan names no such kind
  Symbol join = {};                          // of joined, bordered: the index the shares lie along
  std::int64_t rank = 0;  // of root: whose; of shifted: how many ranks up a value goes; of stacked: rows
  Symbol keep = {};       // the index a block of which is kept, or that is new; invalid: all is kept
  std::int64_t before = 0, after = 0;  // of bordered: how much of what lies around its block
};

// The collective whose bytes say what it costs; nothing where none move, or fewer than one can tell.
std::optional<plan::ExchangeKind> collective_of(const Exchange& exchange);

class Communication : public OperatorOf<Communication> {
 public:
  virtual Exchange exchange(const plan::NodeView& node) const = 0;

  // The mesh axis along which it acts.
  std::string_view axis(const plan::NodeView& node) const { return node.word(0); }

  static constexpr std::size_t kMostMembers = 4096;  // of a bucket

  std::size_t fewest_inputs() const override { return 1; }
  std::size_t most_inputs() const override { return 1; }
  Status infer(const plan::NodeView& node, plan::ResultTypes& results) const override;
  plan::Signature signature(const plan::NodeView& node) const override;
  plan::Work work(const plan::NodeView& node) const override;

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    for (std::size_t k = 0; k < at.input_count(); ++k) at.result(k).data = at.input(k).data;
  }
};

// After how many steps the sum that an all-reduce is of is made; 1 of all else.
std::int64_t steps_between_sums(const plan::NodeView& node);
inline constexpr std::int64_t kMostStepsBetweenSums = 1'000'000'000;

// Of an all-reduce: in how many calls, one after the other, what it moves goes; 1 of all else.
std::int64_t parts_of(const plan::NodeView& node);
inline constexpr std::int64_t kMostParts = 4096;

// An all-reduce's attributes.
struct AllReduceHow {
  std::string_view axis;
  std::string_view kind = "sum";
  std::int64_t every = 1, parts = 1;
  std::string_view priority = "normal";
};
// REQUIRES: node.op() is all_reduce()
AllReduceHow how_reduced(const plan::NodeView& node);
Result<plan::NodeId> add_all_reduce(plan::Graph& graph, std::span<const plan::ValueId> inputs,
                                    const AllReduceHow& how);

// Null when the operator computes.
const Communication* find_communication(const plan::Operator& op);

}  // namespace weft::ops
