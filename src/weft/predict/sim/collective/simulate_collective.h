// weft/predict/sim/collective/simulate_collective.h -- simulates a chunk program on given wires.
//
//   agent 0   [send c0 ==][send c1 ==]          ==  its bytes flow; agents that share a link slow each other
//   agent 1             [..recv c0, send ==]    ..  waits: for a message, a free slot, another step, a signal
//
// Every threadblock runs all its steps once per slice of its chunks. A slice is what fits a slot,
// as in the runtimes, so slices are pipelined through a chain of receive_copy_send. A message
// arrives one latency after its last byte was sent; a slot is free one latency after its message
// was consumed. One-sided actions, which write or read the memory of another rank, use the links
// between the two ranks and are not sliced.
//
// Deterministic: the same program, wires, size and parameters give bit-identical results.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/actions.h"
#include "weft/plan/cluster/topology.h"
#include "weft/predict/sim/collective/run_parameters.h"

namespace weft::sim {

// One action of one agent on one slice; `begin` is when its last wait ended.
struct Stretch {
  std::int32_t agent = 0;
  std::int32_t action = 0;  // in Actions::actions
  std::int32_t slice = 0;
  double begin = 0, end = 0;
};

struct CollectiveTime {
  double seconds = 0;
  std::int64_t events = 0;
  std::int64_t slices = 1;            // per chunk
  std::int64_t simulated_slices = 1;  // of these, simulated
  std::vector<double> link_busy;      // by link of the topology: utilization
  std::vector<Stretch> timeline;      // if requested; by begin
};

enum class Timeline : bool { no, yes };

// `message_bytes` is counted as in nccl-tests: see loop_chunks() in collective.h. Rank r runs on
// device r. Fails if the topology has too few devices or no path between two communicating devices,
// or if the program deadlocks. REQUIRES: actions at step grain, cluster::check(topology)
Result<CollectiveTime> simulate(const collective::Actions& actions, const cluster::Topology& topology,
                                std::int64_t message_bytes, const RunParameters& parameters,
                                Timeline timeline = Timeline::no);

}  // namespace weft::sim
