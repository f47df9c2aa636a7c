// weft/collectives/synthesis/named_trees.h -- synthesized trees identified by a name.
//
//   all_reduce_trees(ranks=8, shape=hybrid_cube_mesh)
//   all_gather_trees(ranks=16, shape=torus, sides=[4, 4], pieces=4)
//
// Trees depend on how devices are connected, not on link rates, and the same name gives the same
// moves everywhere. So a plan holds only the name, and every rank that runs it generates the moves.
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

// The collective of trees with this name; empty if it does not name trees.
std::optional<collective::Kind> kind_of_trees(std::string_view name);

// The name of trees on such a link with `pieces` segments. `ranks` is left out; the runner adds it.
// Empty if the collective has no trees.
std::optional<std::string> name_of_trees(collective::Kind kind, const cluster::Link& link,
                                         std::int32_t pieces);

// Parameters: ranks, shape (as in SHAPE; default: switch), sides, pieces (segments pipelined down a
// tree) and root. Fails for other parameters, and for shapes with a different number of devices.
Result<collective::Moves> named_trees(const collective::AlgorithmReference& reference);

// Checks that it names trees with valid parameters; ranks may be missing.
Status check_trees(const collective::AlgorithmReference& reference);

// The moves of a forest, with every chunk cut into `pieces` segments.
// REQUIRES: forest.trees > 0
collective::Moves tree_moves(const Forest& forest, std::int32_t pieces);

}  // namespace weft::synthesis
