// weft/plan/spmd/placing.h -- how a part of a positional loop is told where it lies.
#pragma once
#include "weft/plan/graph/operator.h"

namespace weft::spmd {

// The attributes by which a slice along a positional loop is told where it lies, by their number; -1: none.
// Operators that have a positional loop call them so.
struct Placing {
  int begin = -1;  // where it begins along the loop; it cannot be told where this is missing
  int size = -1;   // its size along the loop
  // Where every loop is positional: the sizes of the whole (whole_place.h). `begin` is then the place of the
  // slice's first element among the elements of the whole.
  int whole = -1;
};

Placing find_placing(const plan::Operator& op);

}  // namespace weft::spmd
