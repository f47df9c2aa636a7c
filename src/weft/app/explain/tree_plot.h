// weft/app/explain/tree_plot.h -- the trees along which a collective moves, as a drawing and as text.
//
//   root 0, 3 times        0 -> 1 -> 3        a panel a tree: the root on top, what it reaches first below,
//                          0 -> 2             links as arrows, as thick as often the tree stands
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/collectives/synthesis/pack_trees.h"

namespace weft::explain {

struct TreePlot {
  std::string title;
  std::int32_t most_trees = 24;  // of one root; further ones are left out, and the drawing says so
};

// The trees of the first root: those of the others are like them where devices are alike.
std::string draw_trees(const std::vector<synthesis::Tree>& trees, const TreePlot& plot);

// A line a way from the root to a leaf.
std::string print_trees(const std::vector<synthesis::Tree>& trees, const TreePlot& plot);

}  // namespace weft::explain
