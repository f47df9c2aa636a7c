// weft/formats/smi_topology.h -- what joins the GPUs of a machine, as `nvidia-smi topo -m` draws it.
//
//           GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
//   GPU0     X      NV18    PIX     0-55            0
//   GPU1    NV18     X      SYS     0-55            0
//   NIC0    PIX     SYS      X
//
// NV18 is eighteen NVLinks, to the other GPU itself or to switches between all of them; the rest are kinds of PCIe
// paths: PIX, PXB, PHB, NODE, SYS. The text says neither which GPUs they are nor how fast a link is.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

inline constexpr std::size_t kMostSmiGpus = 256;

struct SmiTopology {
  std::vector<std::vector<std::int32_t>> nvlinks;  // of each GPU to each; 0: by PCIe
  // How far each is from each by PCIe, where it has no NVLink to it: 1 is a switch, 2 a host, 3 between hosts.
  std::vector<std::vector<std::int32_t>> distance;
  std::int32_t network_cards = 0;

  std::int32_t gpus() const { return static_cast<std::int32_t>(nvlinks.size()); }
  // Of the GPU that has fewest, where a GPU has `most`: to switches where links to all others would be more.
  std::int32_t nvlinks_of_a_gpu(std::int32_t most) const;
};

bool looks_like_smi_topology(std::string_view text);
// Fails, with the line, where the matrix has gaps or is not the same both ways.
Result<SmiTopology> read_smi_topology(std::string_view text);

}  // namespace weft::formats
