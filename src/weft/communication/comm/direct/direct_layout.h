// weft/communication/comm/direct/direct_layout.h -- layout of the shared-memory segment of a direct
// group.
//
//   segment   | bells | facts | poison | stream high | stream normal | stream low | pairs |
//   stream    | rank 0 | rank 1 | ...
//   rank      | counters | header 0 | header 1 | ... | mailbox | slots, half 0 | slots, half 1 |
//
// A stream is the sequence of one priority's calls. Call q of a stream uses header q % kPlaces in
// every rank's ring. The mailbox holds the data of small calls: entries in a separate ring, so that
// it has room for many short entries or a few long ones. The header gives the offset of its entry.
// Only the owner writes a rank's lines; all ranks read them. All counters are monotonic: a reader
// waits for "at least", and nothing is ever reset.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weft/communication/comm/call.h"
#include "weft/communication/transport/doorbell.h"

namespace weft::comm {

struct DirectTuning;

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kPage = 4096;     // hardware prefetch stops at a page boundary
inline constexpr std::uint64_t kPlaces = 128;  // calls that a rank may be ahead of slow readers
inline constexpr std::size_t kPairSlots = 4;   // per direction of a pair
inline constexpr std::size_t kInlineBytes = 16;
inline constexpr std::size_t kTrialKinds = 8;   // from all_reduce to scatter
inline constexpr std::size_t kTrialSizes = 16;  // powers of two
inline constexpr std::size_t kTrials = kTrialKinds * kTrialSizes;

using SharedWord = std::atomic<std::uint64_t>;
static_assert(SharedWord::is_always_lock_free && sizeof(SharedWord) == 8);

// Where a rank's data for a call is available.
enum class Offer : std::uint8_t {
  nothing,  // the rank contributes nothing
  mailbox,  // in the header line or in the mailbox
  slots,    // fragment by fragment, counted by `copied_in`
  buffer,   // in the user's buffer, which peers can access
  memory    // in the user's buffer, which peers read through the OS kernel
};
// Whether peers read the user's buffer, so that it must not change until they have.
constexpr bool is_own(Offer offer) { return offer == Offer::buffer || offer == Offer::memory; }

// A call as announced by its rank. `sequence` is written last, with release: a reader that sees it
// sees the rest.
struct alignas(kCacheLine) CallHeader {
  SharedWord sequence;  // the call's number in its stream, plus 1
  SharedWord history;   // hash of this rank's calls in the stream, including this one
  SharedWord what;      // see pack_what()
  SharedWord count;
  SharedWord call_number;  // the communicator's number
  SharedWord offer;        // see pack_offer()
  union {
    std::array<SharedWord, 2> offsets;  // of input and output in their heaps, or of a mailbox entry
    std::array<std::byte, kInlineBytes> tiny;
  };
};
static_assert(sizeof(CallHeader) == kCacheLine);

// Progress of a rank. Fragments are numbered across all calls of the stream.
struct alignas(kCacheLine) RankCounters {
  SharedWord copied_in;  // fragments in this rank's slots
  SharedWord combined;   // fragments whose share this rank has reduced
  SharedWord taken;      // fragments in other ranks' slots that this rank no longer needs
  SharedWord finished;   // calls that this rank has finished reading
};

// Values that all ranks must agree on, even if each could compute its own: the first rank to arrive
// writes them.
struct alignas(kCacheLine) GroupFacts {
  SharedWord cores;  // of the machine, for the group; 0: not written yet
  // How to read each rank's memory through the OS kernel, and whether that rank can read all
  // others' memory.
  struct alignas(kCacheLine) Card {
    SharedWord process, address, token;
    SharedWord state;  // a Reading, written after the other fields
  };
  std::array<Card, transport::kMostLocalRanks> cards;
  // Per priority: whether all ranks can read all others' memory, and the trial results per kind and
  // size. See decide_first().
  struct Agreed {
    std::array<SharedWord, 2> readable;  // used alternately
    std::array<SharedWord, kTrials> trials;
  };
  std::array<Agreed, kPriorities> agreed;
};
enum class Reading : std::uint64_t { unknown, introduced, reads_all, cannot };

// The first fault of the group. `cause` is 0 until the other fields are written.
struct alignas(kCacheLine) PoisonRecord {
  SharedWord cause;  // see pack_poison()
  SharedWord claimed;
  struct Side {
    SharedWord rank, what, count;
  };
  std::array<Side, 2> sides;  // of a mismatch
  SharedWord call_number;
};

// Counters of a send connection between two ranks: a ring of slots, each starting with a
// PairHeader.
struct alignas(kCacheLine) PairCounters {
  SharedWord sent;
  alignas(kCacheLine) SharedWord received;
};
struct alignas(kCacheLine) PairHeader {
  SharedWord what;
  SharedWord count;
};

class DirectLayout {
 public:
  DirectLayout(std::int32_t ranks, const DirectTuning& tuning);

  std::size_t bytes() const { return bytes_; }
  std::size_t half_bytes() const { return half_bytes_; }
  std::size_t entry_bytes() const { return entry_bytes_; }      // longest entry
  std::size_t mailbox_bytes() const { return mailbox_bytes_; }  // total per rank
  std::size_t pair_bytes() const { return pair_bytes_; }

  transport::Doorbells& bells(std::byte* segment) const;
  GroupFacts& facts(std::byte* segment) const;
  PoisonRecord& poison(std::byte* segment) const;

  // The memory of `rank` in the stream of `priority`.
  std::byte* rank_part(std::byte* segment, std::size_t priority, std::int32_t rank) const {
    return segment + streams_ +
           (priority * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank)) * rank_bytes_;
  }
  static RankCounters& counters(std::byte* part) { return *reinterpret_cast<RankCounters*>(part); }
  CallHeader& header(std::byte* part, std::uint64_t sequence) const {
    return *reinterpret_cast<CallHeader*>(part + sizeof(RankCounters) +
                                          (sequence % kPlaces) * sizeof(CallHeader));
  }
  // An entry of `bytes` bytes; `start` is the offset of one that does not fit the header.
  std::byte* entry(std::byte* part, CallHeader& header, std::size_t bytes, std::uint64_t start) const {
    return bytes <= kInlineBytes ? header.tiny.data() : part + mailbox_ + start;
  }
  std::byte* half(std::byte* part, std::uint64_t which) const {
    return part + slots_ + (which % 2) * half_bytes_;
  }

  std::byte* pair(std::byte* segment, std::size_t priority, std::int32_t from, std::int32_t to) const;
  PairHeader& pair_slot(std::byte* pair, std::uint64_t piece) const;

 private:
  std::int32_t ranks_;
  std::size_t entry_bytes_, mailbox_bytes_, half_bytes_, pair_bytes_;
  std::size_t mailbox_, slots_, rank_bytes_, pair_stride_;  // strides and relative offsets
  std::size_t facts_, poison_, streams_, pairs_, bytes_;    // offsets in the segment
};

// Packs all fields that must be equal on all ranks, except the counts: kind, type, operation, root,
// peer, algorithm. Fields that a kind does not use are zero.
std::uint64_t pack_what(const Call& call, bool two_shot, bool through_kernel);
// Reconstructs a call from a header, for error messages.
Call unpack_call(std::uint64_t what, std::uint64_t count);

}  // namespace weft::comm
