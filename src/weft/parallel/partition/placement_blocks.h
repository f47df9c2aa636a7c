// weft/parallel/partition/placement_blocks.h -- what must lie together, as one node.
//
// A block is a class of nodes, or several: classes that lie on a cycle of classes cannot be contiguous apart,
// and one that takes no time and no room and has one neighbour gains nothing apart from it.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/parallel/partition/ideals.h"
#include "weft/parallel/partition/placement.h"

namespace weft::partition {

// A node whose output leaves its block somewhere.
struct Sender {
  std::int32_t block = 0;
  double cost = 0;
  std::vector<std::int32_t> readers;  // other blocks, each once
};

struct Blocks {
  struct Block {
    double on_accelerator = 0, on_cpu = 0, bytes = 0;
    bool accelerated = true;
    std::vector<std::int32_t> nodes;
    std::vector<std::int32_t> senders;  // in this block
    std::vector<std::int32_t> heard;    // senders of other blocks that it reads from
  };
  std::vector<Block> blocks;
  std::vector<Sender> senders;
  Dag dag;  // of the blocks: what must not come later
};

Blocks blocks_of(const Placement& placement);

}  // namespace weft::partition
