// weft/formats/placement_json.h -- the inputs of msr-fiddle/dnn-partitioning: operator graphs with
// times on accelerators and CPUs.
//
//   {"maxSizePerFPGA": bytes, "maxFPGAs": 6, "maxCPUs": 1,
//    "nodes": [{"id", "supportedOnFpga", "cpuLatency", "fpgaLatency", "isBackwardNode", "colorClass", "size"}],
//    "edges": [{"sourceId", "destId", "cost"}]}       all edges of a source have the same cost
#pragma once
#include "weft/base/result.h"
#include "weft/formats/json_node.h"
#include "weft/parallel/partition/placement.h"

namespace weft::formats {

Result<partition::Placement> read_placement(const JsonNode& top);

}  // namespace weft::formats
