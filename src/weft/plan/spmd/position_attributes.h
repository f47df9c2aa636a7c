// weft/plan/spmd/position_attributes.h -- the attributes that state where a slice of a positional loop starts.
#pragma once
#include "weft/plan/graph/operator.h"

namespace weft::spmd {

// Attribute numbers, or -1 if the operator has no such attribute. All operators with a positional
// loop use these attribute names.
struct PositionAttributes {
  int begin = -1;  // start along the loop; without it a slice cannot state its position
  int size = -1;   // size along the loop
  // If every loop is positional: the sizes of the whole tensor (global_offset.h). `begin` is then the
  // position of the slice's first element in the whole.
  int whole = -1;
};

PositionAttributes find_position_attributes(const plan::Operator& op);

}  // namespace weft::spmd
