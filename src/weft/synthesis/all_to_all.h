// weft/synthesis/all_to_all.h -- every device's block for every other, along the paths of a concurrent flow.
//
//   flow      0 -> 2:  half over 1, half over 3           chunks of a block are dealt out over these paths so
//   chunks    2 a block: one over 1, one over 3           that no cable has more than its share, then timed
//
// The bound is that of the topology's wires. The schedule is one of the network of devices: whenever cables are
// free, chunks with the longest way to go start first.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/cluster/topology.h"
#include "weft/synthesis/concurrent_flow.h"
#include "weft/synthesis/deadline.h"
#include "weft/synthesis/time_schedule.h"

namespace weft::synthesis {

struct AllToAll {
  double bound = 0;  // bytes per second: no all-to-all has a higher algorithm bandwidth
  double flow = 0;   // what the flow on the network of devices has
};

// Within a hundredth of each other unless time runs out.
Result<AllToAll> bound_all_to_all(const cluster::Topology& topology, const Deadline& deadline = {});

struct AllToAllSchedule {
  StepQuestion question;
  TimeSchedule schedule;
};

// Which of the flow's paths every part of a block takes, by part: source, target, then part of `cut`. Past the
// last path: none, what a device has for itself.
std::vector<std::size_t> deal_paths(const StepNetwork& network, const ConcurrentFlow& flow, std::int32_t cut);

// Chunks of a block: `cut`; of `chunk_bytes` each.
AllToAllSchedule schedule_all_to_all(const StepNetwork& network, const ConcurrentFlow& flow, std::int32_t cut,
                                     double chunk_bytes);

}  // namespace weft::synthesis
