// weft/transport/tcp/cores.h -- which cores the ranks of a machine run on, and whether this one had better move.
//
//   core 0: ranks 0, 1, 3     core 1: rank 2       one too many where 4 ranks share 2 cores: 3 goes to core 1
//
// Ranks on one core wait for each other's turns, while the scheduler, which sees them yield and sleep, is
// content: 2 ranks take twice as long for a small call on one of 2 idle cores. So where a core has had more
// than its fair share of the ranks for a while, one of them goes to another that has less: the highest first,
// the others if it does not, since each knows only of those that send to it (with every message, Sender).
// Whoever has been taken back by the scheduler stays longer each time: a stranger needs the other core.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::transport::tcp {

class Cores {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `ranks` of the group, of which `neighbours` share the `cores` of this machine.
  Cores(std::int32_t rank, std::int32_t ranks, std::int32_t neighbours, std::int32_t cores);

  // Where a rank was when it last sent something; -1: it does not say.
  void tell(std::int32_t rank, std::int32_t core) { core_of_[static_cast<std::size_t>(rank)] = core; }

  // Whether this rank, which runs on core `here`, has been one too many there for long enough.
  bool should_leave(std::int32_t here, Time now);
  // Of the cores that it may run on, the one to go to; -1: none has room.
  std::int32_t better_core(std::span<const std::int32_t> allowed) const;

 private:
  const std::int32_t rank_;
  const std::int32_t fair_;  // ranks a core
  std::vector<std::int32_t> core_of_;
  Time shared_since_{}, moved_at_{};  // zero: not now, never
  std::chrono::nanoseconds stay_{};
};

// The core that the calling thread runs on; -1 where the system does not say.
std::int32_t current_core();
// Takes the calling thread to a core that has room, if there is one, and leaves it free to go anywhere.
void leave_core(const Cores& cores);

}  // namespace weft::transport::tcp
