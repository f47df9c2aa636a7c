// weft/planner/search/pipeline/offload.h -- optimizer states on the host, which updates there.
//
//   device   .. B W ──gradients──▶ host: Adam on its own memory ──parameters──▶ device: next step
//
// Gradients go down and parameters come up over the device's own link to the host, at once in both directions; the
// host updates meanwhile, in pieces, as fast as its memory is read and written. So an update takes as long as the
// longest of the three. Ren et al., ZeRO-Offload, 2021.
#pragma once
#include "weft/planner/search/pipeline/part_costs.h"

namespace weft::search {

// Each way, for one of eight devices of a host: PCIe 5.0 x16 has 63 GB/s, some 55 are measured of it.
inline constexpr double kHostLinkBytesPerSecond = 50e9;
// What a device's share of the host's memory gives: two sockets of eight DDR5-4800 channels have 614 GB/s.
inline constexpr double kHostMemoryBytesPerSecond = 60e9;

void send_to_host(PartCosts& costs);

}  // namespace weft::search
