// weft/collectives/synthesis/routed_trees.h -- fractional spanning trees whose edges have routes.
//
//   root 0:   0.62 of its block   0 -> 1 over [switch 0], 1 -> 2
//             0.38                0 -> 2 over [switch 1], 2 -> 1
//
// Shares are fractions (fractional_packing.h), so links of any rates are saturated. Edges are
// routed where there is capacity: switches forward, and two devices may use several paths at once.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/pack_trees.h"
#include "weft/collectives/synthesis/route_table.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

struct RoutedTrees {
  std::vector<Tree> trees;  // sorted by root; the shares of a root add up to 1
  Routes routes;            // of the edges
  double rate = 0;          // bytes per second per root
  double bound = 0;         // upper bound on the rate
};

// Finding trees for more devices takes too long.
inline constexpr std::int32_t kMostRouted = 48;

// `rate` is a known bound, in bytes per second. There are no trees if time runs out before the
// first are found. `limits_pairs`: limits the rate between two devices to what a program's channels
// carry; then `bound` is just `rate`.
RoutedTrees pack_routed_trees(const Wires& wires, const std::vector<std::int32_t>& roots, double rate,
                              bool limits_pairs, const Deadline& deadline = {});

}  // namespace weft::synthesis
