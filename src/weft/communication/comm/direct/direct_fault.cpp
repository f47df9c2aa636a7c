// Fault reporting: the first fault is recorded in the segment, so that all ranks report the same
// one.
#include <fmt/format.h>

#include "weft/communication/comm/direct/direct_operation.h"

namespace weft::comm {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// The call that a rank announced.
struct Announced {
  std::int32_t rank = 0;
  std::uint64_t what = 0, count = 0;
};

struct Mismatch {
  Announced mine, theirs;
  std::uint64_t call_number = 0;
};

std::string describe(const Announced& side) {
  std::string text = describe(unpack_call(side.what, side.count));
  if (side.what >> 56 != 0) text += " with per-rank counts";
  return fmt::format("rank {} called {}", side.rank, text);
}

Error to_error(const Mismatch& mismatch) {
  return user_error(fmt::format("ranks made calls that do not match: {}, {} (call {})",
                                describe(mismatch.theirs), describe(mismatch.mine), mismatch.call_number),
                    "every rank of a group must make the same calls in the same order");
}

Mismatch read_mismatch(const PoisonRecord& record) {
  const auto get = [](const PoisonRecord::Side& side) {
    return Announced{static_cast<std::int32_t>(side.rank.load(kRelaxed)), side.what.load(kRelaxed),
                     side.count.load(kRelaxed)};
  };
  return {get(record.sides[1]), get(record.sides[0]), record.call_number.load(kRelaxed)};
}

// Records both sides, unless another fault came first, and poisons the group.
Progress fail_with(DirectOperation& operation, const Mismatch& mismatch) {
  DirectSide& side = *operation.side;
  PoisonRecord& record = side.poison_record();
  std::uint64_t nobody = 0;
  if (record.claimed.compare_exchange_strong(nobody, 1, std::memory_order_acq_rel)) {
    const auto put = [](PoisonRecord::Side& to, const Announced& call) {
      to.rank.store(static_cast<std::uint64_t>(call.rank), kRelaxed);
      to.what.store(call.what, kRelaxed);
      to.count.store(call.count, kRelaxed);
    };
    put(record.sides[0], mismatch.theirs);
    put(record.sides[1], mismatch.mine);
    record.call_number.store(mismatch.call_number, kRelaxed);
    record.cause.store(pack_poison({mismatch.theirs.rank, kPoisonedByMismatch}), std::memory_order_release);
    side.bells().ring_all(side.ranks);
  }
  return operation.fail(to_error(mismatch));
}

}  // namespace

Progress fail_mismatch(DirectOperation& operation, std::int32_t other) {
  DirectSide& side = *operation.side;
  // Find the first mismatch still in the ring: this call or an earlier one whose announcement
  // neither side read.
  Mismatch mismatch;
  for (std::uint64_t back = 0; back < kPlaces && back <= operation.sequence; ++back) {
    const std::uint64_t sequence = operation.sequence - back;
    const CallHeader& own = side.layout.header(operation.peer(side.rank).part, sequence);
    const CallHeader& its = side.layout.header(operation.peer(other).part, sequence);
    if (own.sequence.load(kRelaxed) != sequence + 1 ||
        its.sequence.load(std::memory_order_acquire) != sequence + 1)
      break;
    if (own.history.load(kRelaxed) == its.history.load(kRelaxed)) break;
    mismatch = {{side.rank, own.what.load(kRelaxed), own.count.load(kRelaxed)},
                {other, its.what.load(kRelaxed), its.count.load(kRelaxed)},
                own.call_number.load(kRelaxed)};
  }
  return fail_with(operation, mismatch);
}

Progress fail_mismatch(DirectOperation& operation, std::int32_t other, std::uint64_t other_what,
                       std::uint64_t other_count) {
  const Announced mine{operation.side->rank, operation.what(),
                       static_cast<std::uint64_t>(operation.call.count)};
  return fail_with(operation, {mine, {other, other_what, other_count}, operation.call_number});
}

void DirectSide::poison(const DirectGroup::Poison& cause) {
  PoisonRecord& record = poison_record();
  std::uint64_t nobody = 0;
  if (!record.claimed.compare_exchange_strong(nobody, 1, std::memory_order_acq_rel)) return;
  record.cause.store(pack_poison(cause), std::memory_order_release);
  bells().ring_all(ranks);
}

std::uint64_t pack_poison(const DirectGroup::Poison& poison) {
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(poison.rank) << 32 | poison.reason;
}

DirectGroup::Poison unpack_poison(std::uint64_t cause) {
  return {static_cast<std::int32_t>(cause >> 32 & 0x7fffffff), static_cast<std::uint32_t>(cause)};
}

Error poison_error(const DirectSide& side) {
  const PoisonRecord& record = side.poison_record();
  const DirectGroup::Poison poison = unpack_poison(record.cause.load(std::memory_order_acquire));
  switch (poison.reason) {
    case kPoisonedByMismatch: return to_error(read_mismatch(record));
    case kPoisonedByFailure:
      return environment_error(fmt::format("rank {} failed", poison.rank),
                               "shrink the group to continue without it");
    default:
      return environment_error(
          fmt::format("rank {} aborted the group: reason {}", poison.rank, poison.reason));
  }
}

}  // namespace weft::comm
