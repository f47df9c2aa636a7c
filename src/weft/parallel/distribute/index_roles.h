// weft/parallel/distribute/index_roles.h -- what the indices of a plan are good for, as their uses in it tell.
//
//   tokens[b, s]  embed[v, d]  wq[d, h, e]  w1[d, f]  w2[f, d]  gate[x, d, f]
//
//   batch     b          of an input, of no parameter, and parallel in every node it occurs in
//   sequence  s, y, x    of an input, of no parameter, yet somewhere whole, renamed or slid along by windows:
//                        places in a text, rows and columns of images
//   model     f, h, v    of parameters, parallel in one contraction, summed in another (or in a gather)
//   expert    x          of parameters, and always parallel: no contraction sums it
//   further   g          as of the model, beside one of those wherever it is, and cut as that one is: it serves
//                        where the other is too small for all ranks, as key heads are that queries share
//
// Each list begins with the index whose slicing cuts the most work.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct FurtherIndex {
  std::string index, beside;
  std::int64_t beside_size = 0;  // the least that it has
};

// A sequence that queries of attention lie along.
struct AttendedIndex {
  std::string index;
  std::string entry,
      heads;  // the entry that attends, and an index of the model that keys have too; empty: none
};

struct IndexRoles {
  std::vector<std::string> batch, sequence, model, expert;
  std::vector<FurtherIndex> further = {};
  std::vector<AttendedIndex> attended = {};
};

// By the forward pass alone.
IndexRoles index_roles(const plan::Graph& graph);

}  // namespace weft::distribute
