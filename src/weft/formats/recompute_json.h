// weft/formats/recompute_json.h -- graphs for recomputation, several per file.
//
//   [{"name": "vgg16", "input_size": 9408,
//     "nodes": [{"name": "conv1", "f": 2775, "b": 5550, "a": 200704, "inputs": [-1]}, ..]}, ..]
//
// Nodes are in topological order; -1 is the graph's input. f and b are times, a is the size of the
// activation. Other keys are ignored.
#pragma once
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/program/memory/recompute.h"

namespace weft::formats {

// All graphs of a list, or a single one if the file is an object.
Result<std::vector<memory::RecomputeGraph>> read_recompute_graphs(std::string_view text);

}  // namespace weft::formats
