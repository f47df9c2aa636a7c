// How a call is done: from its size, whether its buffers can be reached, and what was asked for.
#include <algorithm>

#include "weft/comm/direct/direct_operation.h"

namespace weft::comm {
namespace {

// Where the bounds of a piece allow it. Each costs ranks that share a core a change of hands.
constexpr std::size_t kPiecesACall = 8, kPiecesAnOversubscribedCall = 2;

// Where every rank has a core: what is copied in is soon taken out, and few slots stay in the caches.
constexpr std::uint64_t kSlotsInUse = 2;

// Up to here a root had rather keep its lead than save a copy.
constexpr std::int64_t kLeadBytes = 4 << 10, kOversubscribedLeadBytes = 16 << 10;
// Below, ranks on oversubscribed cores had rather save a wait than a copy.
constexpr std::int64_t kOversubscribedCopyBytes = 8 << 10;

constexpr std::size_t lines_within(std::size_t bytes) { return bytes / kCacheLine * kCacheLine; }

void number_pieces(DirectOperation& operation) {
  operation.piece_count = (operation.blocks.largest() + operation.unit - 1) / operation.unit;
  DirectStream& stream = *operation.stream;
  operation.first = stream.pieces;
  stream.pieces += operation.piece_count;
  operation.half = stream.staged++ % 2;
  operation.half_free_at = stream.half_free_at[operation.half];
  stream.half_free_at[operation.half] = operation.sequence + 1;
}

// Cuts a staged call into pieces. A message of several pieces flows: the next one is copied in while this
// one is taken out; too many small ones cost more flags than they hide.
void cut_into_pieces(DirectOperation& operation) {
  const DirectSide& side = *operation.side;
  const std::size_t targets = operation.blocks.differ_by_target() ? static_cast<std::size_t>(side.ranks) : 1;
  const std::size_t message = operation.blocks.largest();
  const auto least = static_cast<std::size_t>(side.tuning.least_piece_bytes);
  const std::size_t most =
      std::min(static_cast<std::size_t>(side.tuning.piece_bytes), side.layout.half_bytes() / 2);
  const std::size_t pieces = side.oversubscribed ? kPiecesAnOversubscribedCall : kPiecesACall;
  const std::size_t wish = std::clamp(message * targets / pieces, std::min(least, most), most);
  operation.unit = std::max(lines_within(wish / targets), kCacheLine);
  operation.slot_bytes = operation.unit * targets;
  operation.slots = side.layout.half_bytes() / operation.slot_bytes;
  if (!side.oversubscribed) operation.slots = std::min(operation.slots, kSlotsInUse);
  number_pieces(operation);
}

// The same of a reduction whose private inputs are fetched. Nothing is in slots, but for the input of a
// one-shot all_reduce that is overwritten.
void cut_to_fetch(DirectOperation& operation) {
  const DirectSide& side = *operation.side;
  const bool may_use_slots = !operation.two_shot && !operation.blocks.differ_by_target();
  const std::size_t message = std::max(operation.blocks.largest(), std::size_t{1});
  const std::size_t shares = operation.two_shot ? static_cast<std::size_t>(side.ranks) : 1;
  operation.unit = std::min(bytes_to_fetch(side) * shares, lines_within(message + kCacheLine - 1));
  if (may_use_slots) operation.unit = std::min(operation.unit, lines_within(side.layout.half_bytes() / 2));
  operation.slot_bytes = operation.unit;
  number_pieces(operation);
  operation.slots = may_use_slots ? side.layout.half_bytes() / operation.unit : operation.piece_count;
}

// Whether a root that takes nothing puts a share into the outputs of those who read from it.
bool hands_pay(const DirectOperation& operation) {
  const DirectSide& side = *operation.side;
  const Kind kind = operation.call.kind;
  const auto given = static_cast<std::int64_t>(operation.blocks.most_given());
  return (kind == Kind::broadcast || kind == Kind::scatter) && given != 0 &&
         given >= (side.oversubscribed ? side.tuning.oversubscribed_hand_bytes : side.tuning.hand_bytes);
}

}  // namespace

void prepare(DirectOperation& operation, const DirectWish& wish) {
  DirectSide& side = *operation.side;
  const Call& call = operation.call;
  operation.blocks.set(call, side.ranks);
  const Blocks& blocks = operation.blocks;
  operation.gives = blocks.gives(side.rank);
  operation.takes = blocks.takes(side.rank);
  const auto given = static_cast<std::int64_t>(blocks.most_given());

  // `small` and `two_shot` must come out alike on every rank.
  const std::optional<DirectWay> way = wish.way;
  const bool small =
      call.kind == Kind::barrier || (given <= static_cast<std::int64_t>(side.layout.entry_bytes()) &&
                                     way.value_or(DirectWay::mailbox) == DirectWay::mailbox);
  operation.two_shot = !small && (call.kind == Kind::all_reduce || call.kind == Kind::reduce) &&
                       way != DirectWay::one_shot &&
                       (given > side.tuning.one_shot_bytes || (way && *way != DirectWay::mailbox));
  // Who takes into what it gives changes it while others would still read it; shares of a two-shot are apart.
  operation.overwrites =
      (call.kind == Kind::all_to_all || call.kind == Kind::all_reduce) && call.input == call.output;
  operation.trial = nullptr;
  operation.mode = small || side.ranks == 1 ? CopyMode::slots : find_copy_mode(operation, wish);
  if (operation.mode == CopyMode::kernel_one_shot) operation.two_shot = false;
  if (operation.two_shot) operation.gives = operation.takes = true;
  operation.non_temporal = writes_non_temporal(operation);

  // Where its data is to be had is the rank's own affair. Who offers its buffer waits for the readers: more
  // than a small copy costs where they wait for a core themselves, and a root loses its lead.
  const bool lead_pays =
      has_root(call.kind) && given <= (side.oversubscribed ? kOversubscribedLeadBytes : kLeadBytes);
  const bool copy_pays =
      given < (side.oversubscribed ? kOversubscribedCopyBytes : side.tuning.in_place_bytes);
  const bool reach_wanted = wish.in_place.value_or(!lead_pays && !copy_pays);
  operation.input_place = {};
  operation.output_place = {};
  operation.offer = !operation.gives ? Offer::nothing : small ? Offer::mailbox : Offer::slots;
  operation.output_offered = operation.output_there = operation.hands = operation.handed_out = false;
  if (reach_wanted) {
    if (operation.gives && (!operation.overwrites || operation.two_shot)) {
      if (const auto place = side.find(call.input, blocks.given(side.rank))) {
        operation.input_place = *place;
        operation.offer = Offer::buffer;
      }
    }
    operation.handed_out = !small && hands_pay(operation);
    operation.hands = operation.handed_out && operation.offer == Offer::buffer;
    if ((operation.two_shot && has_output(call, side.rank)) || (operation.handed_out && operation.takes)) {
      const std::size_t bytes = operation.two_shot ? blocks.largest() : blocks.bytes(call.root, side.rank);
      if (const auto place = side.find(call.output, bytes)) {
        operation.output_place = *place;
        operation.output_offered = true;
      }
    }
  }
  const bool is_read = reads_memory(operation.mode);
  if (is_read && operation.offer == Offer::slots && (!operation.overwrites || operation.two_shot)) {
    operation.input_place.offset = reinterpret_cast<std::uintptr_t>(call.input);
    operation.offer = Offer::memory;
  }
  operation.hands |= operation.handed_out && operation.offer == Offer::memory;
  // Who takes does not know yet whether it is read through the kernel what it takes.
  operation.output_there =
      operation.handed_out && operation.takes && !operation.output_offered && operation.stream->readable;
  if (operation.output_there || (is_read && operation.two_shot && !operation.output_offered))
    operation.output_place.offset = reinterpret_cast<std::uintptr_t>(call.output);
  // What is not copied is soon done by two cores, and takes one of them more than twice as long.
  operation.way = operation.offer == Offer::buffer   ? DirectWay::in_place
                  : operation.offer == Offer::memory ? DirectWay::single_copy
                  : small                            ? DirectWay::mailbox
                  : operation.two_shot               ? DirectWay::two_shot
                                                     : DirectWay::one_shot;
  operation.stage = side.ranks == 1      ? step_alone
                    : small              ? step_mailbox
                    : operation.two_shot ? step_two_shot
                                         : step_staged;
  operation.piece_count = 0;
  operation.copied_in = operation.combined = operation.taken = 0;
  operation.own_copied = operation.handed = 0;
  operation.push = operation.all_known = operation.reads_buffers = false;
  operation.next = 0;
  operation.posted = false;
  if (!small) operation.reads_through_kernel() ? cut_to_fetch(operation) : cut_into_pieces(operation);
}

}  // namespace weft::comm
