// weft/collectives/synthesis/routed_trees.h -- spanning trees of devices, each with its share of what a root sends, and the links
// that their edges run over.
//
//   root 0:   0.62 of its block   0 -> 1 over [switch 0], 1 -> 2
//             0.38                0 -> 2 over [switch 1], 2 -> 1
//
// Shares are fractions (fractional_packing.h), so that links of any rates are filled, and edges are routed where there
// is room: switches pass on, and two devices may use several ways between them at once.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/pack_trees.h"
#include "weft/collectives/synthesis/route_book.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

struct RoutedTrees {
  std::vector<Tree> trees;  // by root; their shares add up to 1
  Routes routes;            // of the edges
  double rate = 0;          // bytes per second of every root
  double bound = 0;         // no trees are faster
};

// More devices have trees that take long to find.
inline constexpr std::int32_t kMostRouted = 48;

// `rate` is a bound that is known, in bytes per second. Has no trees where time runs out before the first are found.
// `limits_pairs`: no two devices send each other more than the channels of a program carry; that is no bound of the wires.
RoutedTrees pack_routed_trees(const Wires& wires, const std::vector<std::int32_t>& roots, double rate,
                              bool limits_pairs, const Deadline& deadline = {});

}  // namespace weft::synthesis
