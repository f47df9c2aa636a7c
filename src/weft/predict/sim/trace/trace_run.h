// weft/predict/sim/trace/trace_run.h -- discrete-event simulation of the traces of all ranks.
//
//   WEFT_TRY(run, run_trace(trace, network, system));
//   run.seconds                     0.0136
//   run.ranks[3].exposed_seconds    0.0006     while rank 3 computed nothing
//
// A node may start when its dependencies are done and its resource is free. A rank runs one node at
// a time on its CPU, one on its GPU and one communication; of the ready nodes, the one with the
// smallest id is first. Receives use no resource. A collective starts when all ranks of its group
// have arrived, and occupies their resource from their arrival on. A send ends when the message has
// arrived.
//
// A collective whose wires no other rank uses is simulated once per shape, and on one rank if all
// ranks behave alike. All other collectives share their wires with concurrent traffic.
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
  double compute_seconds = 0;        // of its GPU nodes
  double communication_seconds = 0;  // of its collectives and sends, from their start
  double exposed_seconds = 0;        // until its end, while its GPU was idle
};

struct TraceRun {
  double seconds = 0;
  std::vector<RankTotals> ranks;
  std::int64_t nodes = 0;
  std::int64_t collectives = 0, shapes = 0;  // in total; simulated shapes
  std::int64_t events = 0;                   // simulated
  std::int64_t stands_for = 0;               // events if every rank were simulated individually
  std::vector<NodeTime> timeline;            // if requested; by end
};

struct TraceRunOptions {
  bool timeline = false;
  bool exact = false;  // simulate every rank individually, even if all behave alike
};

// Fails if a rank of the network has no trace or there are too many traces, if a collective cannot
// be simulated, or if the ranks deadlock. A deadlock error names the nodes of the cycle.
Result<TraceRun> run_trace(const ExecutionTrace& trace, const TraceNetwork& network,
                           const TraceSystem& system, const TraceRunOptions& options = {});

}  // namespace weft::sim
