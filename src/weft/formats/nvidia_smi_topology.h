// weft/formats/nvidia_smi_topology.h -- a machine's links, from the table of `nvidia-smi topo -m`
// (smi_topology.h).
//
// If all pairs have the full number of NVLinks, the machine has a switch and each device is linked
// to it once. Devices without NVLink are connected by PCIe switches and hosts: one switch for those
// that are PIX or PXB of each other, one host for those that are PHB, and one cable between hosts.
// The table has no rates; they come from the options.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/plan/cluster/topology.h"

namespace weft::formats {

struct NvidiaSmiOptions {
  double nvlink_bytes_per_second = 25e9;  // per link and direction: V100 and A100
  double pcie_bytes_per_second = 24e9;    // 16 lanes of generation 4, minus headers
  double host_bytes_per_second = 20e9;    // between sockets
  double nvlink_latency_seconds = 0.7e-6, pcie_latency_seconds = 2e-6;
};

// Errors begin with `path`. Network cards are omitted: they lead to other machines.
Result<cluster::Topology> read_nvidia_smi_topology(std::string_view text, std::string_view path,
                                                   const NvidiaSmiOptions& options = {});

}  // namespace weft::formats
