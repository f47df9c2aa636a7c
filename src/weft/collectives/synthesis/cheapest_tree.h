// weft/collectives/synthesis/cheapest_tree.h -- the spanning tree from a root whose edges cost least together.
//
//   cost   0->1 5   0->2 1   2->1 2   1->2 1        from root 0:   0 -> 2 -> 1, which costs 3
//
// Of every node the cheapest edge into it; a circle of such edges becomes one node (Chu and Liu 1965, Edmonds 1967).
#pragma once
#include <cstdint>
#include <vector>

namespace weft::synthesis {

// cost[from][to]; infinite where there is no edge. Returns the parent of every node, -1 of the root. Of trees that
// cost the same to rounding, one that is flat.
// REQUIRES: every node can be reached from the root
std::vector<std::int32_t> cheapest_tree(const std::vector<std::vector<double>>& cost, std::int32_t root);

// Moves nodes to parents nearer the root where an edge costs no more than `level` for each level that is saved.
void flatten(const std::vector<std::vector<double>>& cost, std::int32_t root, double level,
             std::vector<std::int32_t>& parents);

// Levels below the root.
std::int32_t depth_of(const std::vector<std::int32_t>& parents);

}  // namespace weft::synthesis
