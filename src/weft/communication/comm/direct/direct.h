// weft/communication/comm/direct/direct.h -- collectives of ranks that share memory: flags and
// loads instead of messages.
//
//   small        every rank puts its call and its data into its own mailbox; every rank reads all mailboxes
//   staged       fragments of private buffers are pipelined through slots of shared memory: while one is
//                reduced, the next is copied in
//   single copy  private buffers are read by the others through the OS kernel (process_vm_readv)
//   in place     buffers from allocate(): every rank reduces its share straight from and into all of them
//
// Each rank picks one of the four for its own data. Its announcement of the call says where the
// data is, and readers fetch it from there. Ranks must agree only when results go straight into
// other ranks' buffers. In all four, long results are written with non-temporal stores.
//
// The mailbox of a rank is a ring. A rank may run ahead of slow readers by as many calls as the
// ring has places, so the root of a broadcast does not wait. Each place begins with a description
// of the call: a hash of all calls so far, the kind, the count, the buffer locations. So mismatched
// calls are detected before any data is used.
//
// The calls of one priority form a stream. They execute one after another, in the same order on
// every rank, and share slots that stay in the caches. Streams overtake each other between
// fragments. A send is between two ranks: the others need not call it, and it has its own slots.
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

// At most this many unfinished collectives per priority, and one send in each direction between two
// ranks.
inline constexpr std::int32_t kLanes = 4;

// The direct algorithms.
enum class DirectAlgorithm : std::uint8_t { mailbox, one_shot, two_shot, in_place, single_copy };
inline constexpr std::size_t kDirectAlgorithms = 5;
std::string_view name(DirectAlgorithm way);  // "direct mailbox"

// Requested properties of a direct collective, the same on all ranks; the rest is chosen by size.
struct DirectOptions {
  std::optional<DirectAlgorithm> way = {};
  std::optional<bool> in_place = {};  // whether peers read this rank's accessible buffers in place

  DirectOptions() = default;
  DirectOptions(std::optional<DirectAlgorithm> wanted) : way(wanted) {  // exactly this algorithm
    if (way) in_place = *way == DirectAlgorithm::in_place;
  }
};

// The same on all ranks of a group.
struct DirectTuning {
  std::int64_t mailbox_bytes = 16 << 10;    // upper bound per rank and call; less among many ranks
  std::int64_t fragment_bytes = 512 << 10;  // upper bound per rank and staged fragment; less among many ranks
  std::int64_t least_fragment_bytes = 64 << 10;
  std::int64_t one_shot_bytes = 16 << 10;  // up to this size, every rank reduces everything
  std::int32_t fragments_ahead = 2;        // slots of fragment_bytes
  std::int64_t in_place_bytes = 1024;      // smaller allocated buffers still go through the mailbox
  // From this size on, peers read private buffers through the OS kernel: one copy instead of two.
  // 0: if a trial found it faster, see direct_trial.h. Negative: only on request.
  std::int64_t single_copy_bytes = 0;
  // Results of at least this size are written with non-temporal stores; negative: none. Such long
  // results would hardly still be cached when they are read. (In place on x86: 1.3 times as fast at
  // 16 MiB. From 4 to 8 MiB it is 1.1 times as fast on one machine and half as fast on another.)
  std::int64_t non_temporal_bytes = 16 << 20;
};

// Why a group was poisoned. The communicator defines further reasons.
inline constexpr std::uint32_t kPoisonedByFailure = 1;
inline constexpr std::uint32_t kPoisonedByMismatch = 2;

class DirectGroup {
 public:
  // The bytes of shared memory for a group of `ranks` ranks.
  static std::size_t segment_bytes(std::int32_t ranks, const DirectTuning& tuning);
  // `segment` is mapped by all ranks and was zeroed when the first one attached. `one_process`:
  // ranks are threads, so all ranks can access every buffer. REQUIRES: ranks <=
  // transport::kMostLocalRanks.
  static std::unique_ptr<DirectGroup> attach(transport::Segment segment, std::int32_t rank,
                                             std::int32_t ranks, const DirectTuning& tuning,
                                             bool one_process);
  ~DirectGroup();

  std::int32_t rank() const;
  std::int32_t ranks() const;

  // Calls of one lane start in the order they were made. A lane holds the collectives of a
  // priority, or the sends of a priority from one rank to another. can_start(): whether the lane
  // has room at this rank.
  const void* lane(const Call& call) const;
  bool can_start(const Call& call) const;
  // Starts a call. The group owns the operation and does not allocate for it. finish() returns it
  // to its lane; operations may be finished in any order. A collective is blocked until the
  // previous one of the same priority is done. REQUIRES: can_start, check(call), not custom, `wish`
  // the same on all ranks. An impossible wish is ignored: in place for buffers that are not
  // allocated, the mailbox for large data.
  Operation* start(const Call& call, std::uint64_t call_number, const DirectOptions& wish = {});
  void finish(Operation* operation);

  // Waiting, as in Endpoint. wait() spins, yields and sleeps. It polls the words that blocked
  // operations wait for, so it misses nothing that happened after they blocked. Any number of
  // threads may wait.
  std::uint32_t signal();
  void wait(std::uint32_t seen, std::chrono::nanoseconds patience);
  void wake();

  // Registers heap `number` of `rank` (or of this rank) as accessible; must precede calls that use
  // its memory. The communicator passes on the heaps of other ranks. REQUIRES: no operation is
  // being stepped.
  void add_heap(std::int32_t rank, std::int32_t number, transport::Segment heap);
  // The location of an address in the heaps, if it is in one.
  struct Place {
    std::int32_t number = -1;  // of this rank's heap
    std::uint64_t offset = 0;
  };
  std::optional<Place> find(const void* address, std::size_t bytes) const;

  // Fails all operations of all ranks from now on and blames `rank`; the first cause is kept.
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
