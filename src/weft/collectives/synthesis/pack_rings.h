// weft/collectives/synthesis/pack_rings.h -- packs rings through all devices, for stock NCCL.
//
//   DGX-1   0 1 2 3 7 6 5 4 and the reverse, each on its own links, and so on: six rings
//
// Stock NCCL does not accept external trees, but it accepts rings. They use the same logical links
// as trees do. A ring visits every device once, along links with remaining capacity, the widest
// first, with backtracking. Rings are not optimal: `rate` is what they attain.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/synthesis/deadline.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

struct Rings {
  std::vector<std::vector<std::int32_t>> rings;  // each starts with device 0
  double ring_rate = 0;                          // bytes per second per ring
  double rate = 0;                               // bytes per second of an all_gather over all rings
};

// At most `most` rings. Fails if none visits all devices, or none was found in time.
Result<Rings> pack_rings(const cluster::Topology& topology, std::size_t most, const Deadline& deadline = {});

}  // namespace weft::synthesis
