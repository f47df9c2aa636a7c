// weft/parallel/partition/placement_blocks.h -- merges nodes that must share a device into blocks.
//
// A block is one class of nodes or several. Classes on a common cycle cannot be contiguous
// separately. A class without time or memory and with a single neighbour gains nothing from being
// separate.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/parallel/partition/ideals.h"
#include "weft/parallel/partition/placement.h"

namespace weft::partition {

// A node whose output leaves its block.
struct Sender {
  std::int32_t block = 0;
  double cost = 0;
  std::vector<std::int32_t> readers;  // other blocks, without duplicates
};

struct Blocks {
  struct Block {
    double on_accelerator = 0, on_cpu = 0, bytes = 0;
    bool accelerated = true;
    std::vector<std::int32_t> nodes;
    std::vector<std::int32_t> senders;  // in this block
    std::vector<std::int32_t> heard;    // senders in other blocks that it reads from
  };
  std::vector<Block> blocks;
  std::vector<Sender> senders;
  Dag dag;  // of blocks: order constraints
};

Blocks blocks_of(const Placement& placement);

}  // namespace weft::partition
