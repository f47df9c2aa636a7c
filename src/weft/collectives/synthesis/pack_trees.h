// weft/collectives/synthesis/pack_trees.h -- spanning trees from every root that share the links exactly.
//
//   from root 0, 3 of them alike:   0 -> 1 -> 3        and as often as `times` says each link of the tree
//                                   0 -> 2             carries one unit of what the root sends
//
// Trees grow link by link, many alike at once. A link may be added to a tree as often as every set of devices
// still gets in all that the trees outside it have to bring (Edmonds 1973, with the efficient test of Bérczi
// and Frank): one max-flow says how often. Where that is less often than there are trees alike, they part.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/logical_links.h"

namespace weft::synthesis {

struct TreeEdge {
  std::int32_t from = 0, to = 0;  // devices
  std::int32_t link = -1;         // of LogicalLinks
  std::int32_t route = -1;        // of Forest::routes; -1: the shortest
};

struct Tree {
  std::int32_t root = 0;
  Amount times = 1;
  std::vector<TreeEdge> edges;  // each after the one that reaches where it begins
  double share = 0;             // of what the root sends
};

struct Packing {
  std::vector<Tree> trees;  // by root
  bool complete = true;     // else time ran out, or the links do not carry so many
};

// `each` trees from every root. REQUIRES: roots sorted
Packing pack_trees(const LogicalLinks& links, const std::vector<std::int32_t>& roots, Amount each,
                   const Deadline& deadline = {});

}  // namespace weft::synthesis
