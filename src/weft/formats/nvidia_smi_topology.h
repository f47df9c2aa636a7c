// weft/formats/nvidia_smi_topology.h -- the wires of a machine, from the table of `nvidia-smi topo -m` (smi_topology.h).
//
// Where all pairs have as many NVLinks as there are, the machine has a switch, and each device has its links to
// it once. Devices without NVLink meet at PCIe switches and hosts: one switch for those that are PIX or PXB of each
// other, one host for those that are PHB, and one cable between hosts. The table has no rates; those of the options
// stand for them.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/plan/cluster/topology.h"

namespace weft::formats {

struct NvidiaSmiOptions {
  double nvlink_bytes_per_second = 25e9;  // one link, one way: V100 and A100
  double pcie_bytes_per_second = 24e9;    // 16 lanes of generation 4, less the headers
  double host_bytes_per_second = 20e9;    // between sockets
  double nvlink_latency_seconds = 0.7e-6, pcie_latency_seconds = 2e-6;
};

// Errors begin with `path`. Network cards are left out: they lead to other machines.
Result<cluster::Topology> read_nvidia_smi_topology(std::string_view text, std::string_view path,
                                                   const NvidiaSmiOptions& options = {});

}  // namespace weft::formats
