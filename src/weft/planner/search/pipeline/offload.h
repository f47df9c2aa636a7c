// weft/planner/search/pipeline/offload.h -- optimizer states and updates on the host.
//
//   device   .. B W ──gradients──▶ host: Adam on its own memory ──parameters──▶ device: next step
//
// Gradients and parameters move over the device's link to the host, in both directions at once. The
// host updates block by block meanwhile, at the bandwidth of its memory. So an update takes as long
// as the longest of the three. Ren et al., ZeRO-Offload, 2021.
#pragma once
#include "weft/planner/search/pipeline/part_costs.h"

namespace weft::search {

// Per direction, for one of eight devices of a host: PCIe 5.0 x16 has 63 GB/s, about 55 measured.
inline constexpr double kHostLinkBytesPerSecond = 50e9;
// One device's share of host memory: two sockets of eight DDR5-4800 channels have 614 GB/s.
inline constexpr double kHostMemoryBytesPerSecond = 60e9;

void offload_to_host(PartCosts& costs);

}  // namespace weft::search
