// weft/formats/taccl_sketch.h -- TACCL's sketch files.
//
//   {"nnodes": 2, "internode_sketch": {"strategy": "relay", "internode_conn": {"1": [0]}, ...},
//    "symmetry_offsets": [[2, 16]], "hyperparameters": {"input_chunkup": 2}}
//
// See synthesis/sketch.h for what the lines mean. Policies of switches ("uc-min", "uc-max") are hints for TACCL's
// solver, and are read but decide nothing here: links of a switch are shared out exactly.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/synthesis/sketch.h"

namespace weft::formats {

// Errors begin with `path`.
Result<synthesis::Sketch> read_taccl_sketch(std::string_view text, std::string_view path);

}  // namespace weft::formats
