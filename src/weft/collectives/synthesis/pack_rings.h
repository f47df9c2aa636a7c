// weft/collectives/synthesis/pack_rings.h -- rings through all devices that share the wires: what stock NCCL can be given.
//
//   DGX-1   0 1 2 3 7 6 5 4 and back the other way, each on links of its own, and so on: six rings
//
// Stock NCCL takes no trees of others' making, but it takes rings. Links past switches are those that trees are
// packed into; a ring visits every device once, along links with room left, the roomiest first, turning back where
// it is stuck. Rings are not the optimum: `rate` says what they carry.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/synthesis/deadline.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

struct Rings {
  std::vector<std::vector<std::int32_t>> rings;  // each begins with device 0
  double ring_rate = 0;                          // bytes per second along each of them
  double rate = 0;                               // bytes per second of an all_gather over all of them
};

// At most so many rings. Fails where none visits all devices, or none was found in time.
Result<Rings> pack_rings(const cluster::Topology& topology, std::size_t most, const Deadline& deadline = {});

}  // namespace weft::synthesis
