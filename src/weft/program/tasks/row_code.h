// weft/program/tasks/row_code.h -- generates the instructions of a fused group of row nodes.
//
//   y = x + r      v2 = add v0 v1        y is bf16: the store of v2 rounds it, and readers in the loop
//   z = y * g      b4 = v2               get the rounded value. Rounding is omitted without readers,
//                  v3 = round bf16 v2    or if nothing is lost, as after relu. Constants are f32,
//                  v5 = mul v3 v4        whatever their type, like scalars next to tensors.
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
  std::function<Place(plan::ValueId, Place)> copied;  // first copies the value to such a place
};

RowLoop make_row_loop(const Group& group, const RowCodeInputs& inputs);

}  // namespace weft::program
