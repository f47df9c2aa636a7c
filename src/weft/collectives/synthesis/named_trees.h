// weft/collectives/synthesis/named_trees.h -- synthesized trees by a name that says all they are made of.
//
//   all_reduce_trees(ranks=8, shape=hybrid_cube_mesh)
//   all_gather_trees(ranks=16, shape=torus, sides=[4, 4], pieces=4)
//
// Trees depend on how devices are wired, not on how fast the wires are, and the same name gives the same moves
// wherever it is read. So a plan has the name alone, and every rank that runs it makes the moves by itself.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/plan/cluster/cluster.h"

namespace weft::synthesis {

// What collective the trees of this name do; none where it is no name of trees.
std::optional<collective::Kind> kind_of_trees(std::string_view name);

// The name of trees for so many devices on such a link, in so many pieces; `ranks` are left to who runs it.
// None where trees do not make the collective.
std::optional<std::string> name_of_trees(collective::Kind kind, const cluster::Link& link,
                                         std::int32_t pieces);

// Parameters are ranks, shape (as SHAPE writes it; a switch where none is said), sides, pieces that follow each
// other down a tree, and root. Fails for others, and for shapes that do not have so many devices.
Result<collective::Moves> named_trees(const collective::AlgorithmReference& reference);

// Whether it is a name of trees whose parameters make sense; ranks may be left to who runs it.
Status check_trees(const collective::AlgorithmReference& reference);

// The trees of a forest, every chunk cut into `pieces`.
// REQUIRES: forest.trees > 0
collective::Moves tree_moves(const Forest& forest, std::int32_t pieces);

}  // namespace weft::synthesis
