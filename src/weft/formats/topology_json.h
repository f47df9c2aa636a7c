// weft/formats/topology_json.h -- the links of a machine, in the formats of synthesis tools.
//
//   {"name": "dgx1", "bandwidth_unit": "GB/s", "gpus": 8, "switches": ["hub"],
//    "links": [[0, 8, 50], [8, 0, 50, 0.35], ...]}        from, to, bandwidth, optionally a latency in us
//
// Nodes below `gpus` are devices; switches follow. `bandwidth_unit` may also be "chunks per round",
// which only gives relative bandwidths. "copies": ["hub"] are switches that multicast, "reduces":
// ["hub"] those that reduce.
//
//   {"name": "NDv2_1MB", "gpus_per_node": 8, "nics_per_node": 1, "alpha": 0.3, "node_betas_list": [23, 46],
//    "remote_alpha": 2.6, "remote_beta": 105, ...}        TACCL's profile of one node
//
// One beta is a switch. Two betas are the links of a DGX-1: pairs with two links, and pairs with
// one. Instead there may be `links` and `betas`, matrices [to][from]. Costs are per chunk of the
// size at the end of the name, or 1 MiB. TACCL's own files scale them: those of 1KB by 100, those
// of 32KB by 10; this is undone. All network cards are on one network, and neighbouring devices
// share a card.
#pragma once
#include <cstdint>
#include <string_view>

#include "weft/base/result.h"
#include "weft/plan/cluster/topology.h"

namespace weft::formats {

struct TopologyOptions {
  std::int32_t nodes = 1;  // for a TACCL profile; the other form lists all nodes
  // Between two devices, if the file has no latency: TE-CCL's value for NVLink.
  double latency_seconds = 0.7e-6;
  // Bandwidth of one chunk per round: one NVLink of a V100, SCCL's unit.
  double unit_bytes_per_second = 25e9;
};

// Errors begin with `path`.
Result<cluster::Topology> read_topology_json(std::string_view text, std::string_view path,
                                             const TopologyOptions& options = {});

}  // namespace weft::formats
