// weft/collectives/synthesis/cheapest_tree.h -- the minimum-cost spanning tree from a given root.
//
//   cost   0->1 5   0->2 1   2->1 2   1->2 1        from root 0:   0 -> 2 -> 1, which costs 3
//
// Takes the cheapest edge into every node and contracts cycles (Chu and Liu 1965, Edmonds 1967).
#pragma once
#include <cstdint>
#include <vector>

namespace weft::synthesis {

// cost[from][to]; infinite if there is no edge. Returns the parent of every node, -1 for the root.
// Among trees of equal cost up to rounding, prefers a flat one.
// REQUIRES: every node can be reached from the root
std::vector<std::int32_t> cheapest_tree(const std::vector<std::vector<double>>& cost, std::int32_t root);

// Moves nodes to parents nearer the root if that costs at most `level` more per level saved.
void flatten(const std::vector<std::vector<double>>& cost, std::int32_t root, double level,
             std::vector<std::int32_t>& parents);

// The number of levels below the root.
std::int32_t depth_of(const std::vector<std::int32_t>& parents);

}  // namespace weft::synthesis
