// weft/program/row_code.h -- writes the instructions of a group of nodes that run by rows.
#pragma once
#include <functional>
#include <vector>

#include "weft/program/grouping.h"
#include "weft/program/masked_regions.h"
#include "weft/program/row_loop.h"

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
