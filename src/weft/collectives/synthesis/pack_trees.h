// weft/collectives/synthesis/pack_trees.h -- packs spanning trees of all roots exactly into links.
//
//   from root 0, 3 identical trees:   0 -> 1 -> 3      each link of the tree carries one unit of the
//                                     0 -> 2           root's data per tree (`times`)
//
// Trees grow link by link, many identical ones at once. A link may be added to a tree if every set
// of devices can still receive all that the trees outside of it must deliver (Edmonds 1973, with
// the efficient test of Bérczi and Frank). One max-flow gives the number of trees for which this
// holds. If it is less than the number of identical trees, they are split.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/logical_links.h"

namespace weft::synthesis {

struct TreeEdge {
  std::int32_t from = 0, to = 0;  // devices
  std::int32_t link = -1;         // index in LogicalLinks::links
  std::int32_t route = -1;        // index in Forest::routes; -1: the shortest path
};

struct Tree {
  std::int32_t root = 0;
  Amount times = 1;
  std::vector<TreeEdge> edges;  // in order from the root
  double share = 0;             // fraction of the root's data
};

struct Packing {
  std::vector<Tree> trees;  // sorted by root
  bool complete = true;     // false: time ran out, or the links cannot carry that many
};

// `each` trees from every root.
// REQUIRES: roots sorted
Packing pack_trees(const LogicalLinks& links, const std::vector<std::int32_t>& roots, Amount each,
                   const Deadline& deadline = {});

}  // namespace weft::synthesis
