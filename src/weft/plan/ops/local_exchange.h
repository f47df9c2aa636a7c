// weft/plan/ops/local_exchange.h -- one rank's side of a collective or message.
//
//   rank 2 of gpu=3:   %2 = exchange %1 {kind="all-gather", axis=gpu, ranks=3, type=f32[b=8], along=b}
//
// In the plan of all ranks, a communication changes where a value is held (communication.h). In the
// plan of one rank (localize.h) it is this node, with the rank's own sizes: %1 is f32[b=2] here and
// f32[b=3] on the others. The blocks follow from the whole size: ceil(size / ranks) each, the last
// ones smaller or empty.
//
//   kind              operand              result
//   all-reduce        an addend            the combination by `monoid`
//   reduce-scatter    an addend            this rank's block of the combination, cut along `along`
//   all-gather        this rank's block    all of `along`
//   all-to-all        a block of `along`,  all of `along`,
//                     all of `to`          a block of `to`
//   broadcast-from    its own value        that of rank `by`
//   permute-ranks     its own value        that of the rank `by` below
//   halo              its elements in the  the elements of its
//                     others' borders,     own borders, in order
//                     rank by rank
//   send              its own value        nothing: it is sent to rank `by`
//   receive           nothing              what rank `by` sent with this `tag`
//
// A halo's blocks divide `size` elements along `along`, and this rank's block is number `by`.
//
// An all-reduce may have several operands, a bucket, with one result per operand, of its type. It
// may be split into several calls, its parts.
//
// A rank takes part even if its share is empty, since the others wait for it. A rank that sends
// nothing has no operand. A rank that receives nothing has takes=0, and no node reads its result.
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

// low: other exchanges along the axis need not wait for this one.
inline constexpr std::string_view kNormalPriority = "normal", kLowPriority = "low";
Status check_priority(std::string_view priority);

struct LocalExchange {
  ExchangeKind kind = ExchangeKind::all_reduce;
  std::string_view axis;  // of the mesh
  std::int32_t ranks = 1;
  Symbol joins, parts;                      // the indices whose blocks are joined or scattered
  plan::Monoid monoid = plan::Monoid::sum;  // of reductions
  std::int64_t by = 0;  // root, shift in ranks, this rank's number in a halo, or a message's peer
  std::int64_t size = 0, before = 0, after = 0;  // halo: the index's whole size, and the border widths
  plan::DType dtype = plan::DType::f32;          // of the data
  std::int64_t tag = 0;                          // message: identifies it between its two ranks
  std::string_view priority = kNormalPriority;   // all-reduce
  std::int64_t calls = 1;                        // all-reduce: number of parts
  bool gives = true, takes = true;               // whether it has anything to send, or to receive
};

// REQUIRES, for both: node.op() is local_exchange()
ExchangeKind exchange_kind(const plan::NodeView& node);
LocalExchange read_local_exchange(const plan::NodeView& node);

// The elements that rank `from` of a halo's group sends to rank `to`; may be empty.
plan::Share halo_between(const LocalExchange& what, std::int64_t from, std::int64_t to);

// Combines several operands in one call. REQUIRES: `what` is an all-reduce, and there is an
// operand.
Result<plan::NodeId> add_local_bucket(plan::Graph& graph, const LocalExchange& what,
                                      std::span<const plan::ValueId> operands);

// `operand` is invalid if the rank sends nothing. `type` is invalid if it receives nothing; then so
// is the result.
Result<plan::ValueId> add_local_exchange(plan::Graph& graph, const LocalExchange& what, plan::ValueId operand,
                                         plan::TypeId type);

}  // namespace weft::ops
