// weft/formats/taccl_sketch.h -- TACCL's sketch files.
//
//   {"nnodes": 2, "internode_sketch": {"strategy": "relay", "internode_conn": {"1": [0]}, ...},
//    "symmetry_offsets": [[2, 16]], "hyperparameters": {"input_chunkup": 2}}
//
// See synthesis/sketch.h for the meaning of the lines. Switch policies ("uc-min", "uc-max") are
// hints for TACCL's solver; they are read but have no effect, since the links of a switch are
// shared exactly.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/synthesis/sketch.h"

namespace weft::formats {

// Errors begin with `path`.
Result<synthesis::Sketch> read_taccl_sketch(std::string_view text, std::string_view path);

}  // namespace weft::formats
