// weft/synthesis/hop_program.h -- chunks over links one after another, as a program whose links are busy all the time.
//
//   hop 0   chunk 0 from 0 to 1                      link 0 -> 1, used by two streams: two connections
//   hop 1   chunk 0 from 1 to 3, after hop 0         piece 1 of a stream follows piece 0 along the same links
//
// Every connection has a threadblock of its own at either end, so that nothing received holds up what is sent; a
// link too fast for one threadblock has several connections. The order of their steps is that of a run that is
// played before: of what is ready, a connection takes what is due first. All waits lead backwards in that one
// order, so that nothing can block.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "weft/collective/program.h"

namespace weft::synthesis {

// What the run that is played before has for a chunk: its bytes, the pace of a threadblock, and what a message
// takes besides.
struct HopPace {
  double rate = 1;               // bytes per second of one stream
  double connection_rate = 8e9;  // that one connection is given
  std::int32_t most_channels = 32;
  double chunk_bytes = 1 << 19, block_rate = 24e9, message_seconds = 5e-6;
};

class HopProgram {
 public:
  HopProgram(const HopPace& pace, std::int32_t pieces) : pace_(pace), pieces_(pieces) {}

  // First every link is told how many streams use it, then connections are made, then streams add their hops.
  void use(std::int32_t from, std::int32_t to, std::int64_t streams);
  void make_connections();

  // The next stream over this link goes by the next of its connections.
  void take_turn(std::int32_t from, std::int32_t to);

  struct Hop {
    std::int32_t from = 0, to = 0;
    collective::Slot source, target;  // where the chunk lies at either end
    std::int32_t piece = 0;
    std::int32_t after = -1;   // the hop that brought, or last added to, what is sent
    std::int32_t before = -1;  // the earlier addition to the same chunk at the receiver
    bool adds = false;
  };
  // Returns its number. Those it comes after have been added before.
  std::int32_t add(const Hop& hop);

  // `turn` is the time from one piece of a stream to the next. Adds threadblocks to the program's ranks.
  void write(double turn, collective::Program& program);

 private:
  struct Link {
    std::int32_t from = 0, to = 0;
    std::int64_t streams = 0;
    std::int32_t channels = 1;  // connections it has
    std::int32_t first = 0;     // of them
    std::int32_t turn = 0;
  };
  // May start once those it waits for are done; is done at the receiver.
  struct Planned {
    Hop hop;
    std::int32_t connection = -1;
    double due = 0;           // when it must start so that nothing after it comes late
    std::int32_t received = -1;  // the receiver's step
  };

  Link& link(std::int32_t from, std::int32_t to);
  std::int32_t connections_a_stream(const Link& link) const;
  double seconds_of(const Planned& hop) const;
  void find_dues(double turn);
  void play();

  const HopPace pace_;
  const std::int32_t pieces_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> numbers_;
  std::vector<Link> links_;
  std::int32_t connections_ = 0;
  std::vector<double> durations_;  // seconds of one chunk on a connection
  std::vector<Planned> hops_;
  std::vector<std::int32_t> order_;
};

}  // namespace weft::synthesis
