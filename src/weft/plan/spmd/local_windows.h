// weft/plan/spmd/local_windows.h -- which windows and elements of a node one rank has, where its loops are cut.
//
//   conv2d over 8 rows, window 3, padding 1, rank 1 of 2: windows 4-7 see rows 3-7, which is all that it
//   holds of sliced(y, 1, 1); the first window begins at the first of them, so locally padding is 0 and
//   high is 4
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/ops/sliding.h"

namespace weft::spmd {

struct LocalWindows {
  ops::Sliding sliding;
  bool is_cut = false;
  // Of what follows nothing is said where it is not.
  bool is_idle = false;               // no window of this rank sees anything
  std::vector<plan::Share> operands;  // what it needs of each operand along the loop
  plan::Share computed, kept;         // what it computes of the result along the loop, and its share of that
  std::int64_t padding = 0, count = 0;
};

// One for each loop of the node that slides.
std::vector<LocalWindows> local_windows(const plan::NodeView& node, const plan::Signature& signature,
                                        const plan::Mesh& mesh, std::span<const plan::Layout> layouts,
                                        std::int32_t rank);

// States the windows of this rank in the node's attributes. Where one loop is cut, both are stated: the
// padding of columns is no longer that of rows.
void tell_windows(const plan::NodeView& node, std::span<const LocalWindows> windows,
                  std::vector<plan::AttributeValue>& attributes);

// The part of a value whose elements along an index are those of `held`. Fails where it lies outside.
Result<plan::ValueId> add_part(plan::Graph& graph, plan::ValueId value, Symbol along, plan::Share held,
                               plan::Share part);

}  // namespace weft::spmd
