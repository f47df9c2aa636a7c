// weft/parallel/distribute/index_roles.h -- classifies the indices of a plan by how it uses them.
//
//   tokens[b, s]  embed[v, d]  wq[d, h, e]  w1[d, f]  w2[f, d]  gate[x, d, f]
//
//   batch     b          in an input, in no parameter, and parallel in every node that has it
//   sequence  s, y, x    in an input, in no parameter, but somewhere whole, renamed or slid along
//                        by windows: token positions, rows and columns of images
//   model     f, h, v    in parameters, parallel in one contraction, summed in another (or in a
//                        gather)
//   expert    x          in parameters, and always parallel: no contraction sums it
//   further   g          like model, always next to one of those and sliced like it: it is used if
//                        the other is too small for all ranks, as with key heads that groups of
//                        queries share
//
// Each list is ordered by the work that slicing an index divides, largest first.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct FurtherIndex {
  std::string index, beside;
  std::int64_t beside_size = 0;  // its smallest size
};

// A sequence index along which attention queries run.
struct AttendedIndex {
  std::string index;
  std::string entry,
      heads;  // the attention's entry, and a model index that the keys also have; empty: none
};

struct IndexRoles {
  std::vector<std::string> batch, sequence, model, expert;
  std::vector<FurtherIndex> further = {};
  std::vector<AttendedIndex> attended = {};
};

// Looks at the forward pass only.
IndexRoles index_roles(const plan::Graph& graph);

}  // namespace weft::distribute
