// weft/predict/sim/trace/trace_run.h -- runs the traces of all ranks on a network, by discrete events.
//
//   WEFT_TRY(run, run_trace(trace, network, system));
//   run.seconds                     0.0136
//   run.ranks[3].exposed_seconds    0.0006     while rank 3 computed nothing
//
// A node may start when all it comes after is done and there is room: a rank does one thing on its CPU, one
// on its GPU and one communication at a time, of those that are ready the one with the smallest id. Receives
// take no room. A collective begins when all ranks of its group are at it, and holds their room from when
// they come. A send lasts until the message has arrived.
//
// Collectives whose wires nobody else uses are simulated once for all that are alike, and on one rank where
// all do the same; the others share their wires with whoever else is on the way.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/predict/sim/trace/execution_trace.h"
#include "weft/predict/sim/trace/trace_network.h"
#include "weft/predict/sim/trace/trace_system.h"

namespace weft::sim {

struct NodeTime {
  std::int32_t rank = 0;
  std::uint32_t node = 0;
  double begin = 0, end = 0;
};

struct RankTotals {
  double seconds = 0;                // when its last node ended
  double compute_seconds = 0;        // of its GPU's nodes
  double communication_seconds = 0;  // of its collectives and sends, from when they took room
  double exposed_seconds = 0;        // until its end, while its GPU did nothing
};

struct TraceRun {
  double seconds = 0;
  std::vector<RankTotals> ranks;
  std::int64_t nodes = 0;
  std::int64_t collectives = 0, shapes = 0;  // that ran, and that had to be simulated
  std::int64_t events = 0;                   // that were simulated, ...
  std::int64_t stands_for = 0;               // ... and as many as every rank by itself would have taken
  std::vector<NodeTime> timeline;            // where asked for, by end
};

struct TraceRunOptions {
  bool timeline = false;
  bool exact = false;  // every rank by itself, also where all do the same
};

// Fails where a rank of the network has no trace or too many have one, where a collective cannot be done,
// and when the ranks come to a standstill: then it names the nodes that wait for each other in a circle.
Result<TraceRun> run_trace(const ExecutionTrace& trace, const TraceNetwork& network,
                           const TraceSystem& system, const TraceRunOptions& options = {});

}  // namespace weft::sim
