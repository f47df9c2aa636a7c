// weft/collectives/synthesis/hop_program.h -- makes a program of hops that keeps all links busy.
//
//   hop 0   chunk 0 from 0 to 1                      lane 0 -> 1 over links 4 and 9: two connections
//   hop 1   chunk 0 from 1 to 3, after hop 0         chunk 1 follows chunk 0 along the same lanes
//
// Every connection has its own threadblock at either end, so that receives do not delay sends. A
// lane too fast for one threadblock has several connections. A simulated run determines the order
// of their steps: an idle connection starts the ready hop that is due first. All waits point
// backwards in this one order, so the program cannot deadlock.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "weft/collectives/chunks/program.h"

namespace weft::synthesis {

// Parameters of the simulated run: bytes per chunk, the rate of a threadblock, and the overhead per
// message.
struct HopPace {
  double seconds = 1;            // duration of the whole run
  double connection_rate = 8e9;  // bytes per second assigned to one connection
  std::int32_t most_channels = 32;
  double chunk_bytes = 1 << 19, block_rate = 24e9, message_seconds = 5e-6;
};

class HopProgram {
 public:
  // `routes`: the links of each route.
  HopProgram(const HopPace& pace, const std::vector<std::vector<std::int32_t>>& routes)
      : pace_(pace), routes_(routes) {}

  // Call use() for the chunks of every lane, then make_connections(), then add the hops.
  void use(std::int32_t from, std::int32_t to, std::int32_t route, std::int64_t chunks);
  void make_connections();

  struct Hop {
    std::int32_t from = 0, to = 0, route = -1;
    collective::Slot source, target;  // of the chunk at either end
    std::int32_t count = 1;           // consecutive chunks
    double when = 0;                  // due time, as a fraction of the run
    std::int32_t after = -1;  // the hop that delivers the data sent, or the last added one that adds to it
    std::int32_t before =
        -1;  // another hop that adds to the same chunks at the receiver; the first to arrive adds first
    bool adds = false;
  };
  // Returns its number. Hops that it refers to must have been added before.
  std::int32_t add(const Hop& hop);

  // Adds threadblocks to the program's ranks.
  void write(collective::Program& program);

 private:
  struct Lane {
    std::int32_t from = 0, to = 0, route = -1;
    std::int64_t chunks = 0;
    std::int32_t connections = 1;
    std::int32_t first = 0;  // its first connection
    double duration = 0;     // seconds per chunk on one connection
  };
  // May start when the hops it waits for are done; done means received.
  struct Planned {
    Hop hop;
    std::int32_t lane = -1, connection = -1;
    double due = 0;              // latest start that delays no later hop
    double arrives = 0;          // time when it is received
    std::int32_t place = -1;     // the first added hop with the same target chunks
    std::int32_t earlier = -1;   // the hop of that place that arrives just before it
    std::int32_t received = -1;  // the receiver's step
  };

  double seconds_of(const Planned& hop) const;
  template <class Visit>
  void each_needed(const Planned& hop, Visit visit) const;
  void find_dues();
  void play();

  const HopPace pace_;
  const std::vector<std::vector<std::int32_t>>& routes_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t> numbers_;
  std::vector<Lane> lanes_;
  std::int32_t connections_ = 0;
  std::vector<Planned> hops_;
  std::vector<std::int32_t> order_, latest_;  // by arrival; per place: the last to arrive
};

}  // namespace weft::synthesis
