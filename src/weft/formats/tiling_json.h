// weft/formats/tiling_json.h -- tiling problems and schedules, in the JSON format of the MLSys 2026
// contest.
//
//   {"widths": [..], "heights": [..], "inputs": [[0, 1]], "outputs": [[2]], "base_costs": [1500],
//    "op_types": ["MatMul"], "fast_memory_capacity": 25000, "slow_memory_bandwidth": 10, "native_granularity": [128, 128]}
//   {"subgraphs": [[0]], "granularities": [[64, 64, 128]], "tensors_to_retain": [[]], "traversal_orders": [[0, 1, 3, 2]]}
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/json_node.h"
#include "weft/program/memory/tiling.h"

namespace weft::formats {

// Reads a problem that passes memory::check().
Result<memory::TilingProblem> read_tiling_problem(std::string_view text);

Result<std::vector<memory::TilingStep>> read_tiling_schedule(std::string_view text);

// Includes the latencies from `price`.
Json tiling_schedule_json(const std::vector<memory::TilingStep>& steps, const memory::TilingCost& price);

}  // namespace weft::formats
