#include "weft/communication/comm/direct/direct_plan.h"

#include "weft/communication/comm/direct/direct_operation.h"
#include "weft/device/cpu/non_temporal.h"

namespace weft::comm {
namespace {

// A rank that offers its buffer must wait for the readers. Up to this size, a root gains more from
// running ahead than from saving a copy. (8 ranks on 4 cores, broadcasts of 256 B to 4 KiB: 18 to
// 32 times as fast.)
constexpr std::int64_t kLeadBytes = 4 << 10, kOversubscribedLeadBytes = 16 << 10;
// Below this size, ranks on oversubscribed cores gain more from saving a wait than a copy.
constexpr std::int64_t kOversubscribedCopyBytes = 8 << 10;

bool wants_reach(const DirectOperation& operation, std::int64_t given) {
  const DirectSide& side = *operation.side;
  const bool lead_pays =
      has_root(operation.call.kind) && given <= (side.oversubscribed ? kOversubscribedLeadBytes : kLeadBytes);
  const bool copy_pays =
      given < (side.oversubscribed ? kOversubscribedCopyBytes : side.tuning.in_place_bytes);
  return !lead_pays && !copy_pays;
}

// Bytes written by a rank that receives.
std::int64_t bytes_taken(const DirectOperation& operation) {
  const Kind kind = operation.call.kind;
  const bool of_all = kind == Kind::all_gather || kind == Kind::gather || kind == Kind::all_to_all;
  return static_cast<std::int64_t>(operation.blocks.largest()) * (of_all ? operation.side->ranks : 1);
}

bool writes_non_temporal(const DirectOperation& operation) {
  const std::int64_t least = operation.side->tuning.non_temporal_bytes;
  return device::cpu::kHasNonTemporal && least >= 0 && bytes_taken(operation) >= least;
}

// If peers can access this rank's buffers, they read from and write to them directly.
void offer_buffers(DirectOperation& operation) {
  const DirectSide& side = *operation.side;
  const Call& call = operation.call;
  DirectPlan& plan = operation.plan;
  if (plan.gives && (!plan.overwrites || plan.two_shot)) {
    if (const auto place = side.reach.find(call.input, operation.blocks.given(side.rank))) {
      plan.input_place = *place;
      plan.offer = Offer::buffer;
    }
  }
  if (plan.two_shot && has_output(call, side.rank)) {
    if (const auto place = side.reach.find(call.output, operation.blocks.largest())) {
      plan.output_place = *place;
      plan.output_offered = true;
    }
  }
}

}  // namespace

void plan_call(DirectOperation& operation, const DirectOptions& wish) {
  const DirectSide& side = *operation.side;
  const Call& call = operation.call;
  const Blocks& blocks = operation.blocks;
  DirectPlan& plan = operation.plan;
  const auto given = static_cast<std::int64_t>(blocks.most_given());
  const std::optional<DirectAlgorithm> way = wish.way;
  plan.small =
      call.kind == Kind::barrier || (given <= static_cast<std::int64_t>(side.layout.entry_bytes()) &&
                                     way.value_or(DirectAlgorithm::mailbox) == DirectAlgorithm::mailbox);
  plan.two_shot = !plan.small && (call.kind == Kind::all_reduce || call.kind == Kind::reduce) &&
                  way != DirectAlgorithm::one_shot &&
                  (given > side.tuning.one_shot_bytes || (way && *way != DirectAlgorithm::mailbox));
  plan.gives = plan.two_shot || blocks.gives(side.rank);
  plan.takes = plan.two_shot || blocks.takes(side.rank);
  // Receiving into the own input overwrites data that peers still read; the shares of a two-shot
  // are disjoint.
  plan.overwrites =
      (call.kind == Kind::all_to_all || call.kind == Kind::all_reduce) && call.input == call.output;
  plan.non_temporal = !plan.small && writes_non_temporal(operation);

  plan.offer = !plan.gives ? Offer::nothing : plan.small ? Offer::mailbox : Offer::slots;
  plan.output_offered = false;
  plan.input_place = plan.output_place = {};
  const bool is_read = !plan.small && side.ranks > 1 && is_read_through_kernel(operation, wish);
  plan.through_kernel = is_read && collective::reduces(call.kind);
  if (wish.in_place.value_or(wants_reach(operation, given))) offer_buffers(operation);
  if (is_read && plan.offer == Offer::slots) {
    plan.input_place.offset = reinterpret_cast<std::uintptr_t>(call.input);
    plan.offer = Offer::memory;
  }
  plan.way = plan.offer == Offer::buffer   ? DirectAlgorithm::in_place
             : plan.offer == Offer::memory ? DirectAlgorithm::single_copy
             : plan.small                  ? DirectAlgorithm::mailbox
             : plan.two_shot               ? DirectAlgorithm::two_shot
                                           : DirectAlgorithm::one_shot;
}

}  // namespace weft::comm
