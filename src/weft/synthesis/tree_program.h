// weft/synthesis/tree_program.h -- trees as a chunk program whose links are busy all the time.
//
//   tree of root 0, twice:  0 -> 1 -> 3       chunks 0 and 1 of root 0 go to 1, then to 3;
//                           0 -> 2            meanwhile 0 sends the next piece
//
// Chunks are shared out by how often a tree stands: a root with three trees, one of them twice, has blocks of
// four chunks, or a multiple (`pieces`). What gathers also reduces: along trees of the reversed wires, from
// the leaves to the root.
//
// Every connection has a threadblock of its own at either end, so that nothing received holds up what is
// sent; a link too fast for one threadblock has several connections. The order of their steps is that of a
// run that is played before: of what is ready, a connection takes what is due first. All waits lead
// backwards in that one order, so that nothing can block.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collective/program.h"
#include "weft/synthesis/pack_trees.h"

namespace weft::synthesis {

struct TreeProgram {
  collective::Kind kind = collective::Kind::all_gather;
  std::int32_t ranks = 0, root = 0;
  std::int32_t pieces = 1;       // that follow each other down a tree
  double rate = 1;               // bytes per second that one tree carries
  double connection_rate = 8e9;  // that one connection is given
  std::int32_t most_channels = 32;
  // What the run that is played before has for a chunk: its bytes, the pace of a threadblock, and what a
  // message takes besides.
  double chunk_bytes = 1 << 19, block_rate = 24e9, message_seconds = 5e-6;
};

// `down` brings from roots to all; `up` are trees of the reversed wires, whose links are walked back.
// all_gather and broadcast need down, reduce_scatter and reduce up, all_reduce both. Trees are sorted by
// root, and every root has as many. Fails where the chunks or steps would be too many.
Result<collective::Program> tree_program(const TreeProgram& request, const std::vector<Tree>& down,
                                         const std::vector<Tree>& up);

}  // namespace weft::synthesis
