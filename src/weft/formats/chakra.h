// weft/formats/chakra.h -- Chakra execution traces: PREFIX.RANK.et, a file for each rank.
//
//   WEFT_TRY(trace, read_chakra("runs/llama"));    // runs/llama.0.et, runs/llama.1.et, ..; runs/llama.json
//   WEFT_TRY_STATUS(write_chakra(trace, "runs/mine"));
//
// A file is a row of protobuf messages, each behind its length: GlobalMetadata, then Nodes (MLCommons Chakra,
// et_def.proto). Attributes are found by name and may be integers of any width. Groups of ranks come from
// PREFIX.json, {"1": [0, 1], ..}, by the names that nodes give in pg_name; "" and "0" are all ranks.
//
// What real traces have and a run can do without is left out and noted: nodes that come after ones which the
// file does not have, and kinds of nodes that are not known. Circles are for the run to name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/predict/sim/trace/execution_trace.h"

namespace weft::formats {

// One rank's file, that of the rank which comes next in trace.ranks. `name` is for complaints; groups that
// its nodes name must be in the trace already.
Status parse_chakra(std::string_view bytes, std::string_view name, sim::ExecutionTrace& trace);

// The groups of PREFIX.json.
Status parse_chakra_groups(std::string_view json, sim::ExecutionTrace& trace);

// All ranks from 0 on. Given a folder: the one prefix that it has. Names the ranks that have no file.
Result<sim::ExecutionTrace> read_chakra(const std::string& folder_or_prefix);

std::string print_chakra(const sim::ExecutionTrace& trace, std::size_t rank);
std::string print_chakra_groups(const sim::ExecutionTrace& trace);

// Writes PREFIX.RANK.et for every rank and, where there are groups, PREFIX.json.
Status write_chakra(const sim::ExecutionTrace& trace, const std::string& prefix);

}  // namespace weft::formats
