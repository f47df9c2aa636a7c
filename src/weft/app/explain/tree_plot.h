// weft/app/explain/tree_plot.h -- the trees of a collective, as a drawing and as text.
//
//   root 0, 3 times        0 -> 1 -> 3        one panel per tree: the root on top, its children below,
//                          0 -> 2             links as arrows, thicker if the tree is used more often
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/collectives/synthesis/pack_trees.h"

namespace weft::explain {

struct TreePlot {
  std::string title;
  std::int32_t most_trees = 24;  // per root; further ones are omitted, with a note
};

// Draws the trees of the first root; on equal devices those of other roots look the same.
std::string draw_trees(const std::vector<synthesis::Tree>& trees, const TreePlot& plot);

// One line per path from the root to a leaf.
std::string print_trees(const std::vector<synthesis::Tree>& trees, const TreePlot& plot);

}  // namespace weft::explain
