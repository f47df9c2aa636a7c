// weft/program/memory/recompute_blocks.h -- splits a graph into blocks with one base each.
//
//   input -> [a b c] -> [d e] -> [f g h]       bases: the input, c, e; ends: c, e, h
//
// Blocks are small, so each kind of block is solved exactly (recompute_states.h) once per amount of
// memory. The chain solver combines the blocks. Sizes here count in units.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/program/memory/recompute_model.h"

namespace weft::memory {

// A choice of what to keep of a block in the forward pass, besides its end.
struct BlockOption {
  std::uint32_t kept = 0;     // a bit per node; always includes the end
  std::int64_t bytes = 0;     // kept, without the end
  double dropped = 0;         // F of the nodes that are not kept
  std::int64_t peak = 0;      // during the forward pass, without the base
  std::vector<double> after;  // by memory: cost of all B from there; the last entry holds for more
};

// Data shared by all blocks of a kind.
struct BlockKind {
  RecomputeModel model;
  std::vector<BlockOption> ways;        // the first keeps only the end
  std::int64_t peak_first = 0;          // of the forward pass with way 0, if others hold the base
  std::int64_t peak_next = 0;           // the same, if the base is dropped as soon as possible
  std::vector<double> cold;             // by memory, as `after`: all B with nothing of the block kept
  std::int64_t end_size = 0;            // of the end
  double end_forward = 0, forward = 0;  // F of the end, and of the whole block

  double after(std::size_t way, std::int64_t memory) const { return at(ways[way].after, memory); }
  double cold_cost(std::int64_t memory) const { return at(cold, memory); }
  static double at(const std::vector<double>& table, std::int64_t memory) {
    return table[std::min(static_cast<std::size_t>(memory), table.size() - 1)];
  }
};

struct Block {
  std::size_t begin = 0, end = 0;  // nodes
  std::size_t kind = 0;
};

struct Blocks {
  std::int64_t unit = 1;  // bytes; sizes are rounded up to it
  std::int64_t most = 0;  // units with which nothing must be dropped, except for rounding
  std::vector<Block> blocks;
  std::vector<BlockKind> kinds;

  // Ranges of blocks [i, j). Ranges with the same kinds share a number, so that repetitions are
  // solved once.
  std::vector<std::size_t> stretch_of;                         // by i * (blocks + 1) + j
  std::vector<std::pair<std::size_t, std::size_t>> stretches;  // its first occurrence

  std::size_t stretch(std::size_t i, std::size_t j) const { return stretch_of[i * (blocks.size() + 1) + j]; }
};

// The bounds of the blocks of a graph; neighbours are joined if there are more than `most`. Empty
// if some block would have too many nodes.
std::optional<std::vector<std::pair<std::size_t, std::size_t>>> block_bounds(
    std::span<const RecomputeNode> nodes, std::size_t most);

// Candidate sets of nodes to keep of a block, always including its end; the first is the end alone.
std::vector<std::uint32_t> kept_sets(const RecomputeModel& model);

// Peak memory of the forward pass through a block, without its base; and with the base until it is
// dropped.
std::pair<std::int64_t, std::int64_t> forward_peaks(const RecomputeModel& model, std::uint32_t kept,
                                                    std::int64_t base);

// The steps of a forward pass through a block that keeps `kept` and, if requested, drops its base,
// here node -1.
std::vector<RecomputeStep> forward_steps(const RecomputeModel& model, std::uint32_t kept, bool drops_base);

// Empty if block_bounds() returns nothing.
std::optional<Blocks> cut_into_blocks(const RecomputeGraph& graph);

}  // namespace weft::memory
