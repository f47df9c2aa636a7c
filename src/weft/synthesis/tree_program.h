// weft/synthesis/tree_program.h -- trees as a chunk program.
//
//   tree of root 0, twice:  0 -> 1 -> 3       chunks 0 and 1 of root 0 go to 1, then to 3;
//                           0 -> 2            meanwhile 0 sends the next piece
//
// Chunks are shared out by how often a tree stands: a root with three trees, one of them twice, has blocks of
// four chunks, or a multiple (`pieces`). What gathers also reduces: along trees of the reversed wires, from
// the leaves to the root.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collective/program.h"
#include "weft/synthesis/hop_program.h"
#include "weft/synthesis/pack_trees.h"

namespace weft::synthesis {

struct TreeProgram {
  collective::Kind kind = collective::Kind::all_gather;
  std::int32_t ranks = 0, root = 0;
  std::int32_t pieces = 1;  // that follow each other down a tree
  HopPace pace = {};        // a stream is a tree
};

// `down` brings from roots to all; `up` are trees of the reversed wires, whose links are walked back.
// all_gather and broadcast need down, reduce_scatter and reduce up, all_reduce both. Trees are sorted by
// root, and every root has as many. Fails where the chunks or steps would be too many.
Result<collective::Program> tree_program(const TreeProgram& request, const std::vector<Tree>& down,
                                         const std::vector<Tree>& up);

}  // namespace weft::synthesis
