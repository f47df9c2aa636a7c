// weft/formats/stage_costs_json.h -- the inputs of msr-fiddle/piper: layers with their costs per
// tensor parallel degree, with and without recomputation.
//
//   {"maxDevices": 1024, "maxMemoryPerDevice": bytes, "bandwidth": bytes/s, "mbsInBatch": 512,
//    "nodes": [{"id", "TMPCs": {"4": [{"id": "vanilla", "timePerSample", "parameterSize", "memoryUsageA",
//               "memoryUsageB", "syncTimeFw": {"3": bytes}, "syncTimeBw": {"5": bytes}}]}}],
//    "edges": [{"sourceId", "destId", "communicationCost"}]}
#pragma once
#include "weft/base/result.h"
#include "weft/formats/json_node.h"
#include "weft/parallel/partition/hybrid.h"

namespace weft::formats {

// `value` is the JSON value of `top`. It is needed to list the keys of TMPCs and syncs, which are
// numbers.
Result<partition::Hybrid> read_stage_costs(const JsonNode& top, const Json& value);

}  // namespace weft::formats
