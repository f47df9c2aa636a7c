// weft/formats/smi_topology.h -- links between the GPUs of a machine, as `nvidia-smi topo -m`
// prints them.
//
//           GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
//   GPU0     X      NV18    PIX     0-55            0
//   GPU1    NV18     X      SYS     0-55            0
//   NIC0    PIX     SYS      X
//
// NV18 is 18 NVLinks, to the other GPU directly or through switches. The others are kinds of PCIe
// paths: PIX, PXB, PHB, NODE, SYS. The text contains neither the GPU model nor the speed of a link.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

inline constexpr std::size_t kMostSmiGpus = 256;

struct SmiTopology {
  std::vector<std::vector<std::int32_t>> nvlinks;  // between each pair of GPUs; 0: PCIe only
  // PCIe distance of pairs without NVLink: 1 is a switch, 2 a host, 3 between hosts.
  std::vector<std::vector<std::int32_t>> distance;
  std::int32_t network_cards = 0;

  std::int32_t gpus() const { return static_cast<std::int32_t>(nvlinks.size()); }
  // NVLinks of the GPU with the fewest, at most `most`: if the links to all peers exceed that, they
  // go to switches.
  std::int32_t nvlinks_per_gpu(std::int32_t most) const;
};

bool looks_like_smi_topology(std::string_view text);
// Fails, naming the line, if the matrix is incomplete or not symmetric.
Result<SmiTopology> read_smi_topology(std::string_view text);

}  // namespace weft::formats
