// weft/formats/stage_costs_json.h -- the inputs of msr-fiddle/piper: layers with their costs for every tensor degree,
// as they are and recomputed.
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

// `value` is what `top` stands for: keys of TMPCs and of syncs are numbers, which only the value lists.
Result<partition::Hybrid> read_stage_costs(const JsonNode& top, const Json& value);

}  // namespace weft::formats
