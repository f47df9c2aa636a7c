// weft/plan/ops/local_exchange.h -- what one rank's plan says of a collective: its side of it.
//
//   rank 2 of gpu=3:   %2 = exchange %1 {kind="all-gather", axis=gpu, ranks=3, type=f32[b=8], along=b}
//
// In the plan of all ranks a communication changes where a value is held (communication.h). In the plan of
// one rank (localize.h) it is this node, with the rank's own sizes: %1 is f32[b=2] here and f32[b=3] on the
// others. Which blocks the ranks hold follows from the whole: ceil(size / ranks) each, while there is any.
//
//   kind              operand              result
//   all-reduce        an addend            the combination by `monoid`
//   reduce-scatter    an addend            this rank's block of the combination, cut along `along`
//   all-gather        this rank's block    all of `along`
//   all-to-all        a block of `along`,  all of `along`,
//                     all of `to`          a block of `to`
//   broadcast-from    its own value        that of rank `by`
//   permute-ranks     its own value        that of the rank `by` below
//   halo              what the others'     what its own borders are
//                     borders need of it,  made of, in order
//                     rank by rank
//   send              its own value        nothing: it goes to rank `by`
//   receive           nothing              what rank `by` sent with this `tag`
//
// A halo's blocks are those of `size` elements along `along`, and this rank's is number `by`.
//
// An all-reduce may have several operands, a bucket, and a result for each of them, of its type; and it may go as
// several calls, its parts.
//
// A rank takes part even where its share is empty, as the others wait for it. One that gives nothing has no
// operand; one that gets nothing says takes=0, and its result is a number that nobody reads.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weft/plan/graph/exchange_kind.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/graph/signature.h"
#include "weft/plan/ops/exchanges.h"

namespace weft::ops {

using plan::ExchangeKind;

// low: other exchanges along its axis need not wait for it.
inline constexpr std::string_view kNormalPriority = "normal", kLowPriority = "low";
Status check_priority(std::string_view priority);

struct LocalExchange {
  ExchangeKind kind = ExchangeKind::all_reduce;
  std::string_view axis;  // of the mesh
  std::int32_t ranks = 1;
  Symbol joins, parts;                      // the indices whose blocks are joined, or handed out; or neither
  plan::Monoid monoid = plan::Monoid::sum;  // of reductions
  std::int64_t by =
      0;  // the root, or how many ranks up a value goes, or this rank's number in a halo, or who
          // is sent to or received from
  std::int64_t size = 0, before = 0, after = 0;  // of a halo: what is cut in blocks, and their borders
  plan::DType dtype = plan::DType::f32;          // of what moves
  std::int64_t tag = 0;                          // of a message: tells it from others between the two
  std::string_view priority = kNormalPriority;   // of an all-reduce
  std::int64_t calls = 1;                        // likewise: in how many parts it goes
  bool gives = true, takes = true;               // whether it has anything to give, or to take
};

// REQUIRES of both: node.op() is local_exchange()
ExchangeKind exchange_kind(const plan::NodeView& node);
LocalExchange read_local_exchange(const plan::NodeView& node);

// Which elements go from rank to rank of a halo's group; of no size where none do.
plan::Share halo_between(const LocalExchange& what, std::int64_t from, std::int64_t to);

// The combinations of several operands, in one call. REQUIRES: `what` is an all-reduce, and there is an operand.
Result<plan::NodeId> add_local_bucket(plan::Graph& graph, const LocalExchange& what,
                                      std::span<const plan::ValueId> operands);

// `operand` is invalid where the rank gives nothing, `type` where it gets nothing; the result then too.
Result<plan::ValueId> add_local_exchange(plan::Graph& graph, const LocalExchange& what, plan::ValueId operand,
                                         plan::TypeId type);

}  // namespace weft::ops
