// weft/collectives/synthesis/tree_program.h -- compiles trees to a chunk program.
//
//   tree of root 0, half of its block:  0 -> 1 -> 3       chunks 0 and 2 of root 0 go to 1, then to 3;
//                                       0 -> 2            meanwhile chunk 1 takes another tree
//
// Chunks are divided by the trees' shares (interleave_shares.h), for upward and downward trees
// separately: a chunk may reach its root along any tree and leave it along any other. Reductions
// use trees of the reversed links, from the leaves to the root.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/collectives/synthesis/hop_program.h"

namespace weft::synthesis {

struct TreeProgram {
  std::int64_t chunks = 1;  // per root
  HopPace pace = {};
};

// `down` distributes from the roots; `up` are trees of the reversed links, traversed backwards.
// all_gather and broadcast need down, reduce_scatter and reduce up, all_reduce both. Trees are
// sorted by root, and the shares of a root add up to 1. Fails if there are too many chunks or
// steps.
Result<collective::Program> tree_program(const TreeProgram& request, const Forest& forest);

}  // namespace weft::synthesis
