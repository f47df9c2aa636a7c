// weft/comm/direct/direct_placing.h -- moves a waiting thread of this rank to a core with fewer ranks.
//
// Only where the caller asked for it (DirectTuning::place_threads): a program's threads are its own. Ranks
// tell each other through shared memory which core they run on; transport/thread_placement.h decides who
// moves.
#pragma once
#include <cstdint>
#include <mutex>

#include "weft/comm/direct/direct_layout.h"
#include "weft/transport/thread_placement.h"

namespace weft::comm {

class DirectPlacing {
 public:
  DirectPlacing(GroupFacts& facts, std::int32_t rank, std::int32_t ranks);

  // By any thread that waits and has spun in vain. Does nothing while another thread does this.
  void place_thread();

 private:
  std::int32_t tell_core();  // the one that this thread runs on; -1: not known

  GroupFacts& facts_;
  std::int32_t rank_, ranks_;
  std::mutex busy_;  // of the next
  transport::ThreadPlacement placement_;
};

}  // namespace weft::comm
