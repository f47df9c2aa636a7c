// weft/formats/topology_json.h -- the wires of a machine, as synthesis tools write them down.
//
//   {"name": "dgx1", "bandwidth_unit": "GB/s", "gpus": 8, "switches": ["hub"],
//    "links": [[0, 8, 50], [8, 0, 50, 0.35], ...]}        from, to, bandwidth, perhaps a latency in us
//
// Nodes below `gpus` are devices, the switches come after. `bandwidth_unit` may also be "chunks per round",
// where it says only how links compare. "copies": ["hub"] are switches that send on to many what comes in once,
// "reduces": ["hub"] those that add up what comes in from many.
//
//   {"name": "NDv2_1MB", "gpus_per_node": 8, "nics_per_node": 1, "alpha": 0.3, "node_betas_list": [23, 46],
//    "remote_alpha": 2.6, "remote_beta": 105, ...}        TACCL's profile of one node
//
// One beta is a switch; two are the wires of a DGX-1, pairs joined by two links and by one; `links` and
// `betas` in their place are matrices [to][from]. Costs are those of one chunk of the size that the name ends
// in, a mebibyte where it does not say. They may have been multiplied by any factor, and TACCL's own files
// are: those of 1KB by 100, of 32KB by 10, which is taken back. Every node has its cards on one network,
// neighbouring devices sharing a card.
#pragma once
#include <cstdint>
#include <string_view>

#include "weft/base/result.h"
#include "weft/plan/cluster/topology.h"

namespace weft::formats {

struct TopologyOptions {
  std::int32_t nodes = 1;  // of a TACCL profile; the other form states all its nodes
  // Between two devices, where the file has no latency: what TE-CCL has for NVLink.
  double latency_seconds = 0.7e-6;
  // Of one chunk per round: an NVLink of a V100, which SCCL's unit stands for.
  double unit_bytes_per_second = 25e9;
};

// Errors begin with `path`.
Result<cluster::Topology> read_topology_json(std::string_view text, std::string_view path,
                                             const TopologyOptions& options = {});

}  // namespace weft::formats
