// weft/collectives/synthesis/hop_program.h -- chunks over links one after another, as a program whose links are busy all the time.
//
//   hop 0   chunk 0 from 0 to 1                      lane 0 -> 1 over links 4 and 9: two connections
//   hop 1   chunk 0 from 1 to 3, after hop 0         chunk 1 follows chunk 0 along the same lanes
//
// Every connection has a threadblock of its own at either end, so that nothing received holds up what is sent; a
// lane too fast for one threadblock has several connections. The order of their steps is that of a run that is
// played before: a connection that is free takes what is due first of what is ready. All waits lead backwards in that
// one order, so that nothing can block.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "weft/collectives/chunks/program.h"

namespace weft::synthesis {

// What the run that is played before has for a chunk: its bytes, the pace of a threadblock, and what a message
// takes besides.
struct HopPace {
  double seconds = 1;            // in which all chunks have passed
  double connection_rate = 8e9;  // bytes per second that one connection is given
  std::int32_t most_channels = 32;
  double chunk_bytes = 1 << 19, block_rate = 24e9, message_seconds = 5e-6;
};

class HopProgram {
 public:
  // `routes`: the links that each route passes.
  HopProgram(const HopPace& pace, const std::vector<std::vector<std::int32_t>>& routes)
      : pace_(pace), routes_(routes) {}

  // First every lane is told how many chunks pass it, then connections are made, then hops are added.
  void use(std::int32_t from, std::int32_t to, std::int32_t route, std::int64_t chunks);
  void make_connections();

  struct Hop {
    std::int32_t from = 0, to = 0, route = -1;
    collective::Slot source, target;  // where the chunk lies at either end
    std::int32_t count = 1;           // chunks in a row
    double when = 0;                  // of the whole time, when they set out
    std::int32_t after =
        -1;  // the hop that brought, or the last to be named of those that add to, what is sent
    std::int32_t before =
        -1;  // another addition to the same chunks at the receiver: whichever comes first adds first
    bool adds = false;
  };
  // Returns its number. Those that it names have been added before.
  std::int32_t add(const Hop& hop);

  // Adds threadblocks to the program's ranks.
  void write(collective::Program& program);

 private:
  struct Lane {
    std::int32_t from = 0, to = 0, route = -1;
    std::int64_t chunks = 0;
    std::int32_t connections = 1;
    std::int32_t first = 0;  // of them
    double duration = 0;     // seconds of one chunk on one of them
  };
  // May start once those it waits for are done; is done at the receiver.
  struct Planned {
    Hop hop;
    std::int32_t lane = -1, connection = -1;
    double due = 0;      // when it must start so that nothing after it comes late
    double arrives = 0;  // and is taken up
    std::int32_t place =
        -1;  // the first hop that was named of those that lead to the same chunks at the receiver
    std::int32_t earlier = -1;   // the one of them that arrives before it
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
  std::vector<std::int32_t> order_, latest_;  // by arrival; by place: the last to arrive
};

}  // namespace weft::synthesis
