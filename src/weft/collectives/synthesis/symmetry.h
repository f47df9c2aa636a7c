// weft/collectives/synthesis/symmetry.h -- topologies whose devices are all alike, and trees grown once for all of them.
//
//   a torus of 4 x 4: shifting every device by one along a row, or by one along a column, changes nothing
//
// Devices are numbered by digits (8 of a node, 128 nodes); adding one to a digit, round its end, is tried as a
// shift. Where shifts of all digits keep every wire, a tree of root 0 shifted to every other root makes as
// many trees, and each wire carries what the wires of its kind, those that shifts lead to each other, carry of
// the one tree. So only the count of each kind matters, which is easily kept even: no flows are needed.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/optimum.h"
#include "weft/collectives/synthesis/pack_trees.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

struct Symmetry {
  struct Digit {
    std::int32_t stride = 1, size = 1;
  };
  std::vector<Digit> digits;             // lowest first
  std::vector<std::int32_t> kinds;       // of each wire
  std::vector<std::int32_t> kind_sizes;  // how many wires of a kind
};

// None where the shifts tried do not keep the wires, or time is over.
std::optional<Symmetry> find_symmetry(const Wires& wires, const Deadline& deadline = {});

// Device `gpu` shifted by what leads from 0 to `by`.
std::int32_t shift(const Symmetry& symmetry, std::int32_t gpu, std::int32_t by);

struct OrbitTrees {
  std::vector<Tree> trees;  // of all roots, by root; their edges have no links
  Amount each = 0;
  double efficiency = 1;  // of the optimum
};

// At most so many trees of each root. None where they would fall short of the optimum by more than a hundredth.
std::optional<OrbitTrees> grow_orbit(const Wires& wires, const Symmetry& symmetry, Ratio rate, Amount most);

}  // namespace weft::synthesis
