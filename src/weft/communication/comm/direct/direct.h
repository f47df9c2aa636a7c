// weft/communication/comm/direct/direct.h -- collectives of ranks that share memory: no messages, only memory and flags.
//
//   small        every rank puts its call and its data into its own mailbox; every rank reads all mailboxes
//   staged       pieces of private buffers go through slots of shared memory: while one is reduced, the next
//                is copied in
//   single copy  private buffers are read by the others through the kernel
//   in place     buffers from allocate(): every rank reduces its share straight from and into all of them
//
// Each rank picks one of the four for its own data. It announces with the call where the data is, and readers
// take it from there. Ranks must agree only where results go straight into others' buffers. In all four, long
// results are written by non-temporal stores.
//
// Rank r's mailbox is a ring. A rank runs ahead of slow readers by as many calls as the ring has places, so
// the root of a broadcast waits for nobody. Each place begins with what was called: a hash of all calls so
// far, the kind, the count, where the buffers are. So ranks that call different things find out before they
// use any data.
//
// The calls of one priority are one stream. They are done one after another, in the same order on every rank,
// and share slots that stay in the caches. Streams overtake each other piece by piece. A send is between two
// ranks: nobody else need call it, and it has slots of its own.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/call.h"
#include "weft/communication/comm/operation.h"
#include "weft/communication/transport/doorbell.h"
#include "weft/communication/transport/segment.h"

namespace weft::comm {

// So many collectives of each priority can be started and not finished, and one send each way between two ranks.
inline constexpr std::int32_t kLanes = 4;

// How a direct collective is done.
enum class DirectWay : std::uint8_t { mailbox, one_shot, two_shot, in_place, single_copy };
inline constexpr std::size_t kDirectWays = 5;
std::string_view name(DirectWay way);  // "direct mailbox"

// What is asked of a direct collective, the same on all ranks; the rest is chosen by size.
struct DirectWish {
  std::optional<DirectWay> way = {};
  std::optional<bool> in_place = {};  // whether a rank whose buffers others can reach has them read there

  DirectWish() = default;
  DirectWish(std::optional<DirectWay> wanted) : way(wanted) {  // that way and no other
    if (way) in_place = *way == DirectWay::in_place;
  }
};

// The same on all ranks of a group.
struct DirectTuning {
  std::int64_t mailbox_bytes = 16 << 10;  // of what a rank gives, at most; less among many ranks
  std::int64_t piece_bytes = 512 << 10;   // of a staged piece, a rank, at most; less among many ranks
  std::int64_t least_piece_bytes = 64 << 10;
  std::int64_t one_shot_bytes = 16 << 10;  // up to here everyone reduces everything
  std::int32_t pieces_ahead = 2;           // slots of piece_bytes
  std::int64_t in_place_bytes = 1024;  // allocated buffers of fewer bytes go through the mailbox all the same
  // From so many bytes on, others read private buffers through the kernel: one copy instead of two. 0: where
  // that was found quicker, see direct_trial.h. Negative: only where it is asked for.
  std::int64_t single_copy_bytes = 0;
  // Results of so many bytes and more are written by non-temporal stores; negative: none. So long a result is
  // hardly found in a cache later. (In place on x86: 1.3 times as fast at 16 MiB. From 4 to 8 MiB it is 1.1
  // times as fast on one machine and half as fast on another.)
  std::int64_t non_temporal_bytes = 16 << 20;
};

// Why a group was poisoned. Others than these are the communicator's.
inline constexpr std::uint32_t kPoisonedByDeath = 1;
inline constexpr std::uint32_t kPoisonedByMismatch = 2;

class DirectGroup {
 public:
  // The bytes of shared memory that `ranks` ranks need.
  static std::size_t segment_bytes(std::int32_t ranks, const DirectTuning& tuning);
  // `segment` is mapped by all ranks and was all zero when the first of them attached. `one_process`: ranks
  // are threads, so every buffer can be reached by everyone. REQUIRES: ranks <= transport::kMostLocalRanks.
  static std::unique_ptr<DirectGroup> attach(transport::Segment segment, std::int32_t rank,
                                             std::int32_t ranks, const DirectTuning& tuning,
                                             bool one_process);
  ~DirectGroup();

  std::int32_t rank() const;
  std::int32_t ranks() const;

  // Calls with one lane begin in the order they were made: collectives of a priority, and sends of a priority
  // from one rank to another. Whether the call's lane has room at this rank.
  const void* lane(const Call& call) const;
  bool can_start(const Call& call) const;
  // Starts a call. The group owns the operation, which takes no memory from the heap. finish() frees its lane
  // again; operations may be finished in any order. A collective is blocked until the one before it of the
  // same priority is done. REQUIRES: can_start, check(call), not custom, `wish` the same on all ranks. A wish
  // that does not fit is ignored: in place for what is not allocated, the mailbox for what is too large.
  Operation* start(const Call& call, std::uint64_t call_number, const DirectWish& wish = {});
  void finish(Operation* operation);

  // Waiting, as in Endpoint. wait() spins, yields and sleeps. It looks itself at what the blocked operations
  // wait for, so it misses nothing that happened since they said so. Any number of threads may wait.
  std::uint32_t signal();
  void wait(std::uint32_t seen, std::chrono::nanoseconds patience);
  void wake();

  // Buffers that peers can reach: heap `number` of `rank` (also this one's own), before a call uses memory of
  // it. The communicator tells a rank of another's heap. REQUIRES: no operation is being stepped.
  void add_heap(std::int32_t rank, std::int32_t number, transport::Segment heap);
  // Where in the heaps an address lies, if at all.
  struct Place {
    std::int32_t number = -1;  // of the heap of this rank
    std::uint64_t offset = 0;
  };
  std::optional<Place> find(const void* address, std::size_t bytes) const;

  // Everyone's operations fail from now on, saying that `rank` is the cause; the first cause stays.
  void poison(std::int32_t rank, std::uint32_t reason);
  struct Poison {
    std::int32_t rank = -1;
    std::uint32_t reason = 0;
  };
  std::optional<Poison> poisoned() const;

 private:
  struct State;
  explicit DirectGroup(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft::comm
