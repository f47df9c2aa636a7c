// weft/collectives/synthesis/tree_program.h -- trees as a chunk program.
//
//   tree of root 0, half of its block:  0 -> 1 -> 3       chunks 0 and 2 of root 0 go to 1, then to 3;
//                                       0 -> 2            meanwhile chunk 1 takes another tree
//
// Chunks are dealt out by the trees' shares (deal_shares.h), trees up and down each for themselves: a chunk may come to
// its root along any tree and leave it along any other. What gathers also reduces: along trees of the reversed wires,
// from the leaves to the root.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/collectives/synthesis/hop_program.h"

namespace weft::synthesis {

struct TreeProgram {
  std::int64_t chunks = 1;  // of a root's block
  HopPace pace = {};
};

// `down` brings from roots to all; `up` are trees of the reversed wires, whose links are walked back.
// all_gather and broadcast need down, reduce_scatter and reduce up, all_reduce both. Trees are sorted by root, and the
// shares of a root add up to 1. Fails where the chunks or steps would be too many.
Result<collective::Program> tree_program(const TreeProgram& request, const Forest& forest);

}  // namespace weft::synthesis
