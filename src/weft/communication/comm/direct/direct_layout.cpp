#include "weft/communication/comm/direct/direct_layout.h"

#include <algorithm>

#include "weft/communication/comm/direct/direct.h"

namespace weft::comm {
namespace {

// Pair connections grow with the square of the rank count: their total stays near this.
constexpr std::size_t kPairsTogether = 24 << 20;
constexpr std::size_t kMostPairBytes = 16 << 10;
// The slots of all ranks stay near this in total, as do the mailboxes; but each rank gets the
// minimum below.
constexpr std::size_t kSlotsTogether = 64 << 20, kMailboxesTogether = 64 << 20;
constexpr std::size_t kLeastHalfBytes = 256 << 10, kLeastMailboxBytes = 64 << 10,
                      kMostMailboxBytes = 512 << 10;
constexpr std::size_t kEntriesAhead = 16;  // a mailbox holds this many of the longest entries

constexpr std::size_t lines_around(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}
constexpr std::size_t pages_around(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

constexpr std::uint64_t byte_at(std::uint64_t value, int position) { return value << (8 * position); }

}  // namespace

DirectLayout::DirectLayout(std::int32_t ranks, const DirectTuning& tuning) : ranks_(ranks) {
  const auto size = [](std::int64_t value) {
    return static_cast<std::size_t>(std::max<std::int64_t>(value, 0));
  };
  const std::size_t all = static_cast<std::size_t>(ranks);
  mailbox_bytes_ = std::clamp(kMailboxesTogether / (kPriorities * all) / kPage * kPage, kLeastMailboxBytes,
                              kMostMailboxBytes);
  entry_bytes_ = std::min(size(tuning.mailbox_bytes), mailbox_bytes_ / kEntriesAhead);
  // Kinds with a block per rank divide a slot into that many cache lines at least.
  const std::size_t wish = size(tuning.fragment_bytes) * size(tuning.fragments_ahead);
  const std::size_t affordable = std::max(kSlotsTogether / (2 * kPriorities * all), kLeastHalfBytes);
  half_bytes_ = lines_around(std::max(std::min(wish, affordable), 2 * all * kCacheLine));
  mailbox_ = pages_around(sizeof(RankCounters) + kPlaces * sizeof(CallHeader));
  slots_ = mailbox_ + mailbox_bytes_;
  rank_bytes_ = pages_around(slots_ + 2 * half_bytes_);

  const std::size_t ways = all * all * kPriorities;
  pair_bytes_ =
      std::clamp(kPairsTogether / (ways * kPairSlots) / kCacheLine * kCacheLine, kCacheLine, kMostPairBytes);
  pair_stride_ = sizeof(PairCounters) + kPairSlots * (sizeof(PairHeader) + pair_bytes_);

  facts_ = lines_around(sizeof(transport::Doorbells));
  poison_ = facts_ + sizeof(GroupFacts);
  streams_ = pages_around(poison_ + sizeof(PoisonRecord));
  pairs_ = streams_ + kPriorities * all * rank_bytes_;
  bytes_ = pairs_ + ways * pair_stride_;
}

transport::Doorbells& DirectLayout::bells(std::byte* segment) const {
  return *reinterpret_cast<transport::Doorbells*>(segment);
}

GroupFacts& DirectLayout::facts(std::byte* segment) const {
  return *reinterpret_cast<GroupFacts*>(segment + facts_);
}

PoisonRecord& DirectLayout::poison(std::byte* segment) const {
  return *reinterpret_cast<PoisonRecord*>(segment + poison_);
}

std::byte* DirectLayout::pair(std::byte* segment, std::size_t priority, std::int32_t from,
                              std::int32_t to) const {
  const std::size_t all = static_cast<std::size_t>(ranks_);
  return segment + pairs_ +
         ((priority * all + static_cast<std::size_t>(from)) * all + static_cast<std::size_t>(to)) *
             pair_stride_;
}

PairHeader& DirectLayout::pair_slot(std::byte* pair, std::uint64_t piece) const {
  return *reinterpret_cast<PairHeader*>(pair + sizeof(PairCounters) +
                                        (piece % kPairSlots) * (sizeof(PairHeader) + pair_bytes_));
}

std::uint64_t pack_what(const Call& call, bool two_shot, bool through_kernel) {
  std::uint64_t what = byte_at(static_cast<std::uint64_t>(call.kind), 0);
  if (call.kind == Kind::barrier) return what;
  what |= byte_at(static_cast<std::uint64_t>(call.type), 1);
  if (collective::reduces(call.kind) || call.purpose != Purpose::itself)
    what |= byte_at(static_cast<std::uint64_t>(call.op), 2);
  if (has_root(call.kind)) what |= byte_at(static_cast<std::uint64_t>(call.root), 3);
  if (call.kind == Kind::send) what |= byte_at(static_cast<std::uint64_t>(call.peer), 4);
  return what | byte_at(static_cast<std::uint64_t>(call.priority), 5) |
         byte_at(
             (two_shot ? 1 : 0) | (through_kernel ? 2 : 0) | static_cast<std::uint64_t>(call.purpose) << 2,
             6) |
         byte_at(call.counts.empty() ? 0 : 1, 7);
}

Call unpack_call(std::uint64_t what, std::uint64_t count) {
  const auto byte_of = [what](int position) { return static_cast<std::uint8_t>(what >> (8 * position)); };
  // The word comes from another process: a value outside the enum leaves the default.
  const auto take = [](std::uint8_t number, auto last, auto& to) {
    if (number <= static_cast<std::uint8_t>(last)) to = static_cast<decltype(last)>(number);
  };
  Call call;
  take(byte_of(0), Kind::custom, call.kind);
  take(byte_of(1), ElementType::u64, call.type);
  take(byte_of(2), ReduceOp::bit_xor, call.op);
  call.root = byte_of(3);
  call.peer = byte_of(4);
  take(byte_of(5), Priority::low, call.priority);
  call.count = static_cast<std::int64_t>(count);
  take(static_cast<std::uint8_t>(byte_of(6) >> 2), Purpose::own_counts, call.purpose);
  return call;
}

}  // namespace weft::comm
