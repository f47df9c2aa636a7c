// weft/collectives/one_sided/counter_matching.h -- counters of MSCCL++ plans; pairs waits and signals.
//
// A counter is one end of a channel, or a semaphore of a rank.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/check/order_edges.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

// Counters are numbered by rank, then: memory channels, port channels, semaphores.
class CounterNumbers {
 public:
  explicit CounterNumbers(const OneSided& plan);
  std::int32_t count() const { return count_; }
  std::int32_t channel(std::int32_t rank, Path path, std::int32_t channel) const;
  std::int32_t semaphore(std::int32_t rank, std::int32_t id) const;
  // The peer's counter that a signal on this channel raises; -1: the peer has none.
  std::int32_t other_end(std::int32_t rank, Path path, std::int32_t channel) const;
  std::int32_t initial(std::int32_t counter) const;  // its value before the first run

 private:
  void pair_ends(Path path);

  const OneSided& plan_;
  std::vector<std::int32_t> first_, other_end_;
  std::int32_t count_ = 0;
};

// One increment or decrement of a counter in one run, in plan order.
struct CounterEvent {
  std::int32_t node, block, segment, thread;
  bool relaxed;
};
struct CounterUse {
  std::vector<CounterEvent> raises, takes;
};

// Adds an edge from every signal to the wait that cannot return without it.
// REQUIRES: as many raises as takes.
void match_counters(const CounterUse& use, std::int32_t initial, OrderEdges& edges);

}  // namespace weft::collective
