// weft/collectives/one_sided/counter_turns.h -- the counters of an MSCCL++ plan (a channel's two ends, a rank's semaphores),
// and which wait of a run goes with which signal.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/check/order_edges.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

// Counters are numbered rank by rank: memory channels, port channels, semaphores.
class CounterNumbers {
 public:
  explicit CounterNumbers(const OneSided& plan);
  std::int32_t count() const { return count_; }
  std::int32_t channel(std::int32_t rank, Path path, std::int32_t channel) const;
  std::int32_t semaphore(std::int32_t rank, std::int32_t id) const;
  // The counter at the peer that a signal on this channel raises; -1: the peer has none for it.
  std::int32_t other_end(std::int32_t rank, Path path, std::int32_t channel) const;
  std::int32_t initial(std::int32_t counter) const;  // its value before the first run

 private:
  void pair_ends(Path path);

  const OneSided& plan_;
  std::vector<std::int32_t> first_, other_end_;
  std::int32_t count_ = 0;
};

// What raises or takes from a counter in one run, in the order of the plan.
struct CounterTurn {
  std::int32_t node, block, segment, thread;
  bool relaxed;
};
struct CounterUse {
  std::vector<CounterTurn> raises, takes;
};

// An edge from every signal to the wait that cannot pass without it.
// REQUIRES: raised as often as taken from.
void match_turns(const CounterUse& use, std::int32_t initial, OrderEdges& edges);

}  // namespace weft::collective
