// weft/program/tasks/row_code.h -- writes the instructions of a group of nodes that run by rows.
//
//   y = x + r      v2 = add v0 v1        y is bf16: stored from v2, which rounds it there, and rounded for
//   z = y * g      b4 = v2               those that compute with it here; not where nobody does, nor where
//                  v3 = round bf16 v2    nothing is lost, as by relu. Constants are what f32 holds, whatever
//                  v5 = mul v3 v4        their type, as numbers beside tensors are elsewhere.
#pragma once
#include <functional>
#include <vector>

#include "weft/program/tasks/grouping.h"
#include "weft/program/tasks/masked_regions.h"
#include "weft/program/tasks/row_loop.h"

namespace weft::program {

struct RowCodeInputs {
  const plan::Graph& graph;
  const Grouping& grouping;
  const MaskedRegions& masked;
  std::function<bool(plan::ValueId)> is_stored;       // read after the loop
  std::function<Place(plan::ValueId, Place)> copied;  // the value moved to a place like that first
};

RowLoop make_row_loop(const Group& group, const RowCodeInputs& inputs);

}  // namespace weft::program
