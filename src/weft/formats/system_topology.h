// weft/formats/system_topology.h -- the topology of a machine that NCCL or RCCL described.
//
//   NcclSystem                           Topology
//     gpus, by rank or in file order       devices
//     nvswitch, pci                        switches
//     cpus                                 hosts
//     nics                                 network cards
//     nets                                 ports of one switch, the network
#pragma once
#include "weft/base/result.h"
#include "weft/formats/nccl_topology_xml.h"
#include "weft/plan/cluster/topology.h"

namespace weft::formats {

// Fails if the machine has no gpus.
Result<cluster::Topology> topology_of(const NcclSystem& system);

}  // namespace weft::formats
