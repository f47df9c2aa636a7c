// weft/collectives/synthesis/symmetry.h -- equivalent devices: the trees of one root serve all.
//
//   a torus of 4 x 4: shifting every device by one along a row, or by one along a column, changes nothing
//
// Devices are numbered by digits (8 per node, 128 nodes). Adding one to a digit, modulo its size,
// is tried as a shift. If shifts of all digits preserve every wire, a tree of root 0 can be shifted
// to every other root. Each wire then carries what one tree puts on all wires of its kind, those
// that shifts map to each other. So only the count per kind matters, which is easy to balance: no
// flows are needed.
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
  std::vector<std::int32_t> kinds;       // per wire
  std::vector<std::int32_t> kind_sizes;  // number of wires per kind
};

// Empty if no tried shifts preserve the wires, or time ran out.
std::optional<Symmetry> find_symmetry(const Wires& wires, const Deadline& deadline = {});

// Device `gpu` under the shift that maps 0 to `by`.
std::int32_t shift(const Symmetry& symmetry, std::int32_t gpu, std::int32_t by);

struct OrbitTrees {
  std::vector<Tree> trees;  // of all roots, sorted by root; their edges have no links
  Amount each = 0;
  double efficiency = 1;  // relative to the optimum
};

// At most `most` trees per root. Empty if they are more than one percent below the optimum.
std::optional<OrbitTrees> grow_orbit(const Wires& wires, const Symmetry& symmetry, Ratio rate, Amount most);

}  // namespace weft::synthesis
