// weft/formats/collective_table_json.h -- tables of measured collectives as JSON.
//
//   {"algorithm": "nccl_ring", "collective": "allreduce", "ranks": 8,
//    "rows": [{"bytes": 1024, "out_of_place_us": 11.88, "in_place_us": 11.88}, ...]}
//
// Only the rows and their bytes are required. Other keys are ignored; null means no time.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/formats/nccl_tests_log.h"

namespace weft::formats {

// `path` is only for error messages, which name the row.
Result<CollectiveTable> parse_collective_table_json(std::string_view text, std::string_view path);

}  // namespace weft::formats
