// weft/communication/comm/direct/direct_layout.h -- what ranks that share memory keep there, and where.
//
//   segment   | bells | facts | poison | stream high | stream normal | stream low | pairs |
//   stream    | rank 0 | rank 1 | ...
//   rank      | counters | header 0 | header 1 | ... | mailbox | slots, half 0 | slots, half 1 |
//
// A stream is one priority's calls, one after another. Call q of a stream uses header q % kPlaces of every
// rank's ring. The mailbox holds the data of small calls: entries, one behind the other in a ring of their
// own, so that many short ones or a few long ones have room. The header says where its entry begins. Only the
// owner writes a rank's lines; everyone reads them. All numbers only grow: a reader waits for "at least",
// and nothing is ever reset.
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
inline constexpr std::size_t kPage = 4096;     // what a core fetches ahead ends with the page
inline constexpr std::uint64_t kPlaces = 128;  // so many calls a rank runs ahead of slow readers
inline constexpr std::size_t kPairSlots = 4;   // of a send's way from one rank to another
inline constexpr std::size_t kInlineBytes = 16;
inline constexpr std::size_t kTrialKinds = 8;   // from all_reduce to scatter
inline constexpr std::size_t kTrialSizes = 16;  // powers of two
inline constexpr std::size_t kTrials = kTrialKinds * kTrialSizes;

using SharedWord = std::atomic<std::uint64_t>;
static_assert(SharedWord::is_always_lock_free && sizeof(SharedWord) == 8);

// Where a rank's data for a call is to be had.
enum class Offer : std::uint8_t {
  nothing,  // it gives none in this call
  mailbox,  // in the header's line or in the mailbox
  slots,    // piece by piece, as `copied_in` counts
  buffer,   // in the user's own buffer, which others can reach
  memory    // in the user's own buffer, which others read through the kernel
};
// Whether others read the user's own buffer, so that it must stay as it is until they have.
constexpr bool is_own(Offer offer) { return offer == Offer::buffer || offer == Offer::memory; }

// One call as its rank announces it. `sequence` is written last, with release: who reads it sees the rest.
struct alignas(kCacheLine) CallHeader {
  SharedWord sequence;  // the call's number in its stream, plus 1
  SharedWord history;   // of what this rank called so far in the stream, this call included
  SharedWord what;      // see pack_what()
  SharedWord count;
  SharedWord call_number;  // as the communicator counts
  SharedWord offer;        // see pack_offer()
  union {
    std::array<SharedWord, 2> offsets;  // of input and output in their heaps, or of a mailbox entry
    std::array<std::byte, kInlineBytes> tiny;
  };
};
static_assert(sizeof(CallHeader) == kCacheLine);

// How far a rank is. Pieces are numbered through all calls of the stream.
struct alignas(kCacheLine) RankCounters {
  SharedWord copied_in;  // pieces that are in this rank's slots
  SharedWord combined;   // pieces whose share this rank has reduced
  SharedWord taken;      // pieces of all others' slots that this rank needs no more
  SharedWord finished;   // calls of which this rank reads nothing any more
};

// What all ranks must agree on, although each could find out by itself: the first rank to come writes it.
struct alignas(kCacheLine) GroupFacts {
  SharedWord cores;  // of the machine, for the group; 0: nobody has come
  // How to read each rank's memory through the kernel, and whether that rank can read everyone's.
  struct alignas(kCacheLine) Card {
    SharedWord process, address, token;
    SharedWord state;  // a Reading, written after the rest
  };
  std::array<Card, transport::kMostLocalRanks> cards;
  // For each priority: whether all ranks can read all others' memory, and what the trials of each kind and
  // size found. See first_says().
  struct Agreed {
    std::array<SharedWord, 2> readable;  // in turns
    std::array<SharedWord, kTrials> trials;
  };
  std::array<Agreed, kPriorities> agreed;
};
enum class Reading : std::uint64_t { unknown, introduced, reads_all, cannot };

// The first fault of the group. `cause` is 0 until the rest is written.
struct alignas(kCacheLine) PoisonRecord {
  SharedWord cause;  // see pack_poison()
  SharedWord claimed;
  struct Side {
    SharedWord rank, what, count;
  };
  std::array<Side, 2> sides;  // of a mismatch
  SharedWord call_number;
};

// A send's way from one rank to another: a ring of slots, each beginning with what is sent.
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
  std::size_t entry_bytes() const { return entry_bytes_; }      // the longest entry
  std::size_t mailbox_bytes() const { return mailbox_bytes_; }  // all of a rank's
  std::size_t pair_bytes() const { return pair_bytes_; }

  transport::Doorbells& bells(std::byte* segment) const;
  GroupFacts& facts(std::byte* segment) const;
  PoisonRecord& poison(std::byte* segment) const;

  // The part of the segment that is `rank`'s in the stream of `priority`.
  std::byte* rank_part(std::byte* segment, std::size_t priority, std::int32_t rank) const {
    return segment + streams_ +
           (priority * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank)) * rank_bytes_;
  }
  static RankCounters& counters(std::byte* part) { return *reinterpret_cast<RankCounters*>(part); }
  CallHeader& header(std::byte* part, std::uint64_t sequence) const {
    return *reinterpret_cast<CallHeader*>(part + sizeof(RankCounters) +
                                          (sequence % kPlaces) * sizeof(CallHeader));
  }
  // Of `bytes` bytes; `start` is where a longer one begins.
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
  std::size_t mailbox_, slots_, rank_bytes_, pair_stride_;  // strides and offsets within their part
  std::size_t facts_, poison_, streams_, pairs_, bytes_;    // offsets in the segment
};

// What must be equal on all ranks, apart from the counts: kind, type, operation, root, peer, pattern. Fields
// that a kind does not use are zero.
std::uint64_t pack_what(const Call& call, bool two_shot, bool through_kernel);
// A call to be described, from what a header says.
Call unpack_call(std::uint64_t what, std::uint64_t count);

}  // namespace weft::comm
