// weft/predict/sim/collective/simulate_collective.h -- how long a chunk program takes on given wires.
//
//   agent 0   [send c0 ==][send c1 ==]          ==  its bytes flow; agents that share a link slow each other
//   agent 1             [..take c0, send on ==] ..  waits: for a message, a free slot, another step, a signal
//
// Every threadblock walks all its steps once for each slice of its chunks, a slice being what fits a slot, as
// the runtimes do; so slices follow each other down a chain of receive_copy_send. A message is seen one
// latency after its last byte left, a slot is free one latency after its message was used. One-sided
// actions, which write or read the memory of another rank, are charged to the links between the two; they are
// not cut into slices.
//
// Deterministic: the same program, wires, size and parameters give the same answer to the last bit.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/actions.h"
#include "weft/plan/cluster/topology.h"
#include "weft/predict/sim/collective/run_parameters.h"

namespace weft::sim {

// One action of one agent on one slice; begin is when nothing kept it waiting any more.
struct Stretch {
  std::int32_t agent = 0;
  std::int32_t action = 0;  // in Actions::actions
  std::int32_t slice = 0;
  double begin = 0, end = 0;
};

struct CollectiveTime {
  double seconds = 0;
  std::int64_t events = 0;
  std::int64_t slices = 1;         // of a chunk, ...
  std::int64_t walked_slices = 1;  // ... and how many of them were simulated
  std::vector<double> link_busy;   // by link of the topology: share of what it could have carried
  std::vector<Stretch> timeline;   // where asked for, by begin
};

enum class Timeline : bool { no, yes };

// `message_bytes` as nccl-tests counts them: see loop_chunks() in collective.h. Rank r runs on device r.
// Fails when the topology has too few devices or no way between two of them that must talk, or when the
// program comes to a standstill.
// REQUIRES: actions at step grain, cluster::check(topology)
Result<CollectiveTime> simulate(const collective::Actions& actions, const cluster::Topology& topology,
                                std::int64_t message_bytes, const RunParameters& parameters,
                                Timeline timeline = Timeline::no);

}  // namespace weft::sim
