// weft/transport/tcp/cores.h -- which cores the ranks of a machine run on, and when to go to another.
//
//   core 0: ranks 0, 1, 3     core 1: rank 2       one too many where 4 ranks share 2 cores: 3 goes to core 1
//
// Ranks on one core wait for each other's turns, while the scheduler, which sees them yield and sleep, is
// content: 2 ranks take twice as long for a small call on one of 2 idle cores. So where a core has had more
// than its fair share of the ranks for a while, one of them goes to another that has less: the highest first,
// the others if it does not. Whoever has been taken back by the scheduler stays longer each time: a foreign process
// needs the other core.
//
//   word of a message   bits 0      10     20      30     32       so all hear of all, though each receives
//                            core+1 | rank | core+1 | hops         from few; what was said by fewer mouths
//                            mine     another's       since him    counts more, and all is forgotten in time
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

  // What a message says of cores, sent from core `here`, and what is learned from one; 0 says nothing.
  std::uint32_t tell(std::int32_t here);
  void hear(std::int32_t from, std::uint32_t word);

  // Whether this rank, which runs on core `here`, has been one too many there for long enough.
  bool should_leave(std::int32_t here, Time now);
  // Of the cores that it may run on, the one to go to; -1: none has room.
  std::int32_t better_core(std::span<const std::int32_t> allowed) const;

 private:
  struct Known {
    std::int32_t core = -1, hops = kForgotten;
  };
  static constexpr std::int32_t kForgotten = 4;

  std::int64_t count(std::int32_t core, std::int32_t from_rank = 0) const;
  void forget_some();

  const std::int32_t rank_;
  const std::int32_t fair_;   // ranks a core
  std::vector<Known> known_;  // of each rank but this
  std::size_t told_ = 0;      // the latest of them
  std::int32_t looks_ = 0;
  Time shared_since_{}, moved_at_{};  // zero: not now, never
  std::chrono::nanoseconds stay_{};
};

// Takes the calling thread to a core that has room, if there is one, and leaves it free to go anywhere.
void leave_core(const Cores& cores);

}  // namespace weft::transport::tcp
