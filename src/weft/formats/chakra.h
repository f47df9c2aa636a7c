// weft/formats/chakra.h -- Chakra execution traces: PREFIX.RANK.et, one file per rank.
//
//   WEFT_TRY(trace, read_chakra("runs/llama"));    // runs/llama.0.et, runs/llama.1.et, ..; runs/llama.json
//   WEFT_TRY_STATUS(write_chakra(trace, "runs/mine"));
//
// A file is a sequence of length-delimited protobuf messages: GlobalMetadata, then Nodes (MLCommons
// Chakra, et_def.proto). Attributes are found by name and may be integers of any width. Groups of
// ranks come from PREFIX.json, {"1": [0, 1], ..}, by the names in nodes' pg_name; "" and "0" are
// all ranks.
//
// Parts of real traces that a run does not need are dropped and noted: dependencies on nodes
// missing from the file, and unknown kinds of nodes. Cycles are reported by the run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/predict/sim/trace/execution_trace.h"

namespace weft::formats {

// Parses the file of the next rank of trace.ranks. `name` is for error messages. Groups that its
// nodes name must already be in the trace.
Status parse_chakra(std::string_view bytes, std::string_view name, sim::ExecutionTrace& trace);

// Parses the groups of PREFIX.json.
Status parse_chakra_groups(std::string_view json, sim::ExecutionTrace& trace);

// Reads all ranks from 0 on. A folder must have a single prefix. The error names the ranks without
// a file.
Result<sim::ExecutionTrace> read_chakra(const std::string& folder_or_prefix);

std::string print_chakra(const sim::ExecutionTrace& trace, std::size_t rank);
std::string print_chakra_groups(const sim::ExecutionTrace& trace);

// Writes PREFIX.RANK.et for every rank and, if there are groups, PREFIX.json.
Status write_chakra(const sim::ExecutionTrace& trace, const std::string& prefix);

}  // namespace weft::formats
