// weft/plan/spmd/placing.h -- the attributes that state where a slice of a positional loop starts.
#pragma once
#include "weft/plan/graph/operator.h"

namespace weft::spmd {

// Attribute numbers, or -1 if the operator has no such attribute. All operators with a positional
// loop use these attribute names.
struct Placing {
  int begin = -1;  // start along the loop; without it a slice cannot state its position
  int size = -1;   // size along the loop
  // If every loop is positional: the sizes of the whole tensor (whole_place.h). `begin` is then the
  // position of the slice's first element in the whole.
  int whole = -1;
};

Placing find_placing(const plan::Operator& op);

}  // namespace weft::spmd
