// weft/transport/thread_placement.h -- when a rank's thread goes to another core, where the caller asked for it.
//
//   core 0: ranks 0, 1, 3     core 1: rank 2       one too many where 4 ranks share 2 cores: 3 goes to core 1
//
// Ranks on one core wait for each other's turns. The scheduler sees them yield and sleep and leaves them
// there: two ranks on one of two idle cores take twice as long for a small call. So where a core has had more
// than its fair share of the ranks for a while, one of them moves to a core that has less: the highest first,
// another if that one does not. A rank that the scheduler moves back waits longer each time, since another
// process needs the other core.
//
// A program's threads are its own: no thread is moved unless Options::place_threads of the communicator, or
// WEFT_PLACE_THREADS=1, asks for it.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::transport {

bool environment_places_threads();  // WEFT_PLACE_THREADS=1

// Not thread-safe.
class ThreadPlacement {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `ranks` of the group, of which `neighbours` share the `cores` of this machine.
  ThreadPlacement(std::int32_t rank, std::int32_t ranks, std::int32_t neighbours, std::int32_t cores);

  // Where another rank runs; -1: not known.
  void note(std::int32_t other, std::int32_t core) { cores_[static_cast<std::size_t>(other)] = core; }
  std::int32_t core_of(std::int32_t other) const { return cores_[static_cast<std::size_t>(other)]; }

  // Whether this rank, which runs on core `here`, has been one too many there for long enough. The answer yes
  // means that it moves now.
  bool should_leave(std::int32_t here, Time now);
  // Of the cores that it may run on, the one to go to; -1: none has room.
  std::int32_t better_core(std::span<const std::int32_t> allowed) const;

  // Moves the calling thread, which runs on core `here`, if it should leave and another core has room; answers
  // whether it did. The thread stays free to run anywhere that it could before.
  bool place_thread(std::int32_t here, Time now);

 private:
  std::int64_t count(std::int32_t core, std::int32_t from_rank = 0) const;

  std::int32_t rank_;
  std::int32_t fair_;                 // ranks a core
  std::vector<std::int32_t> cores_;   // of each rank but this; -1: not known
  Time shared_since_{}, moved_at_{};  // zero: not now, never
  std::chrono::nanoseconds stay_;
};

}  // namespace weft::transport
