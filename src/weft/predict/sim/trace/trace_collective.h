// weft/predict/sim/trace/trace_collective.h -- simulates one collective of a trace.
//
//   chunk 0   [scatter, dim 0][== all-reduce, dim 1 ==][gather, dim 0]
//   chunk 1                   [scatter, dim 0]         [== all-reduce, dim 1 ==][gather, dim 0]
//
// A rank works on at most `active_chunks` chunks per dimension; others are queued in order of
// arrival.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/predict/sim/trace/chunk_gates.h"
#include "weft/predict/sim/trace/trace_network.h"
#include "weft/predict/sim/trace/trace_system.h"
#include "weft/predict/sim/trace/traffic.h"

namespace weft::sim {

// The collective to simulate. `members` are ranks of the network; empty means all of them.
struct CollectiveCall {
  TraceNode::Collective collective = TraceNode::Collective::all_reduce;
  std::int64_t bytes = 0;
  std::vector<std::int32_t> members = {};

  friend auto operator<=>(const CollectiveCall&, const CollectiveCall&) = default;
};

// The phases of a chunk. Fails if an algorithm needs a power of two, or if there are too many
// steps.
Result<std::vector<ChunkPhase>> chunk_phases(const CollectiveCall& call, const TraceNetwork& network,
                                             const TraceSystem& system);

// Fails if simulating every member would take too much memory.
Status check_each(std::span<const ChunkPhase> phases, std::int32_t members, const TraceSystem& system);

// Whether no other rank's messages ever use the wires between these ranks.
bool has_exclusive_wires(std::span<const std::int32_t> members, const TraceNetwork& network);

class TraceCollective {
 public:
  // Events of a run carry `run` and one of these in Note::what.
  enum What : std::uint32_t { kArrived, kProcessed, kBegun, kWhats };

  // `ended(member, time)` is called once per member. Folded: the only member represents all.
  TraceCollective(const CollectiveCall& call, std::vector<ChunkPhase> phases, const TraceNetwork& network,
                  const TraceSystem& system, std::uint32_t run, Traffic::Folded folded,
                  std::function<void(std::int32_t, double)> ended);

  void start(double now, Traffic& traffic);
  void handle(const Happening& happening, Traffic& traffic);

 private:
  struct Place {  // of one chunk at one member
    std::int32_t phase = -1, have = 0;
    std::int32_t gate = -1;  // the next to open; -1: the chunk is queued
  };

  std::size_t at(std::int32_t member, std::int32_t chunk) const {
    return static_cast<std::size_t>(member) * static_cast<std::size_t>(chunks_) +
           static_cast<std::size_t>(chunk);
  }
  std::int32_t place_in(std::int32_t member, const ChunkPhase& phase) const;
  std::int32_t member_at(std::int32_t member, const ChunkPhase& phase, std::int32_t place) const;
  std::int32_t rank_of(std::int32_t member) const;
  ChunkPhase phase_of(const Place& place, std::int32_t chunk) const;
  std::uint16_t& early(std::int32_t member, std::int32_t chunk, std::int32_t gate);

  void enter_phase(double now, std::int32_t member, std::int32_t chunk, Traffic& traffic);
  void admit(double now, std::int32_t member, std::size_t queue, Traffic& traffic);
  void await(double now, std::int32_t member, std::int32_t chunk, Traffic& traffic);
  void open(double now, std::int32_t member, std::int32_t chunk, Traffic& traffic);
  void process(double now, std::int32_t member, std::int32_t chunk, Traffic& traffic);

  const CollectiveCall call_;
  const std::vector<ChunkPhase> phases_;
  const TraceNetwork& network_;
  const TraceSystem& system_;
  const std::uint32_t run_;
  const Traffic::Folded folded_;
  const std::function<void(std::int32_t, double)> ended_;

  std::int32_t members_ = 1, chunks_ = 1, gates_ = 0;
  std::vector<std::int32_t> first_gate_;  // by phase: its first gate in consecutive numbers
  std::vector<Place> places_;
  std::vector<std::uint16_t> early_;  // messages that arrived before their gate is next
  struct Queue {
    std::deque<std::int32_t> waiting;
    std::int32_t running = 0;
  };
  std::vector<Queue> queues_;       // by member and dimension
  std::vector<std::int32_t> left_;  // unfinished chunks, by member
};

// When each member is done, relative to the common start; one number if all are alike.
struct CollectiveEnds {
  std::vector<double> seconds;
  std::int64_t events = 0;      // simulated
  std::int64_t stands_for = 0;  // of all ranks together
};

// Simulates a collective without contention. Symmetric collectives are simulated on one rank for
// all, unless `exact`.
Result<CollectiveEnds> run_alone(const CollectiveCall& call, const TraceNetwork& network,
                                 const TraceSystem& system, bool exact = false);

}  // namespace weft::sim
