// weft/plan/spmd/local_windows.h -- one rank's windows and elements of a node with a sliding loop.
//
//   conv2d over 8 rows, window 3, padding 1, rank 1 of 2: windows 4-7 see rows 3-7, which is
//   exactly what it holds with sliced(y, 1, 1). The first window begins at the first of these
//   rows, so locally padding is 0 and high is 4
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
  // The members below are set only if is_cut.
  bool is_idle = false;               // this rank's windows see no elements
  std::vector<plan::Share> operands;  // the range it reads of each operand along the loop
  plan::Share computed, kept;         // the range of the result it computes, and the part it keeps
  std::int64_t padding = 0, count = 0;
};

// One per sliding loop of the node.
std::vector<LocalWindows> local_windows(const plan::NodeView& node, const plan::Signature& signature,
                                        const plan::Mesh& mesh, std::span<const plan::Layout> layouts,
                                        std::int32_t rank);

// Sets the node's attributes to the windows of this rank. If one loop is sliced, sets both
// paddings, since columns no longer have the padding of rows.
void set_window_attributes(const plan::NodeView& node, std::span<const LocalWindows> windows,
                           std::vector<plan::AttributeValue>& attributes);

// The range `part` of a value that has the range `held` along an index. Fails if `part` is outside.
Result<plan::ValueId> add_part(plan::Graph& graph, plan::ValueId value, Symbol along, plan::Share held,
                               plan::Share part);

}  // namespace weft::spmd
