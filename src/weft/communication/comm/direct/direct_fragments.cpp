#include "weft/communication/comm/direct/direct_fragments.h"

#include <algorithm>

#include "weft/communication/comm/direct/direct_operation.h"

namespace weft::comm {
namespace {

// Within the bounds on fragment size. Each fragment costs a context switch for ranks that share a
// core.
constexpr std::size_t kFragmentsPerCall = 8, kFragmentsPerOversubscribedCall = 2;

// For ranks with a core each: fragments are soon taken out, and few slots stay in the caches. (2
// ranks, private all_reduce of 1 MiB: 1.2 times as fast with 2 or 3 as with 8; 16 ranks,
// reduce_scatter: 3 are 1.2 times as fast as 2.)
constexpr std::uint64_t kSlotsInUse = 3;

constexpr std::size_t kFetchedTogether = 512 << 10, kMostFetched = 256 << 10, kLeastFetched = 32 << 10;

constexpr std::size_t lines_within(std::size_t bytes) { return bytes / kCacheLine * kCacheLine; }

// With too many small fragments, the flags cost more than the overlap saves.
void cut_for_slots(const DirectOperation& operation, DirectFragments& cut) {
  const DirectSide& side = *operation.side;
  const std::size_t targets = operation.blocks.differ_by_target() ? static_cast<std::size_t>(side.ranks) : 1;
  const auto least = static_cast<std::size_t>(side.tuning.least_fragment_bytes);
  const std::size_t most =
      std::min(static_cast<std::size_t>(side.tuning.fragment_bytes), side.layout.half_bytes() / 2);
  const std::size_t pieces = side.oversubscribed ? kFragmentsPerOversubscribedCall : kFragmentsPerCall;
  const std::size_t wish =
      std::clamp(operation.blocks.largest() * targets / pieces, std::min(least, most), most);
  cut.unit = std::max(lines_within(wish / targets), kCacheLine);
  cut.slot_bytes = cut.unit * targets;
  cut.slots = side.layout.half_bytes() / cut.slot_bytes;
  if (!side.oversubscribed) cut.slots = std::min(cut.slots, kSlotsInUse);
}

// Private inputs are fetched, so no slots are used.
void cut_for_fetching(const DirectOperation& operation, DirectFragments& cut) {
  const std::size_t message = std::max(operation.blocks.largest(), std::size_t{1});
  cut.unit = std::min(bytes_to_fetch(operation.side->ranks), lines_within(message + kCacheLine - 1));
  cut.slot_bytes = cut.unit;
}

}  // namespace

void cut_into_pieces(DirectOperation& operation) {
  DirectFragments& cut = operation.cut;
  operation.plan.through_kernel ? cut_for_fetching(operation, cut) : cut_for_slots(operation, cut);
  cut.count = (operation.blocks.largest() + cut.unit - 1) / cut.unit;
  if (operation.plan.through_kernel) cut.slots = cut.count;
  const StagedCalls::Numbers numbers = operation.stream->staged.add(cut.count, operation.sequence);
  cut.first = numbers.first_piece;
  cut.half = numbers.half;
  cut.half_free_at = numbers.half_free_at;
}

std::size_t bytes_to_fetch(std::int32_t ranks) {
  const auto others = static_cast<std::size_t>(std::max(ranks - 1, 1));
  return std::clamp(lines_within(kFetchedTogether / others), kLeastFetched, kMostFetched);
}

}  // namespace weft::comm
