// weft/program/memory/recompute_blocks.h -- a graph cut into blocks, each reading those before through one node, its base.
//
//   input -> [a b c] -> [d e] -> [f g h]       bases: the input, c, e; ends: c, e, h
//
// A block is small, so all that can happen inside is solved exactly (recompute_states.h) once for each kind of
// block and each amount of memory; the solver of chains puts blocks together. Sizes count in units here.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/program/memory/recompute_model.h"

namespace weft::memory {

// A way through a block on the way forward: what of it stays, beside its end.
struct BlockWay {
  std::uint32_t kept = 0;     // a bit for each node; the end's is set
  std::int64_t bytes = 0;     // kept, without the end
  double dropped = 0;         // F of what does not stay
  std::int64_t peak = 0;      // on the way forward, without the base
  std::vector<double> after;  // by memory: the cost of all B from there; the last holds for all above
};

// What blocks of one kind have in common.
struct BlockKind {
  RecomputeModel model;
  std::vector<BlockWay> ways;           // the first keeps nothing but the end
  std::int64_t peak_first = 0;          // way 0 forward from a base that is held by others
  std::int64_t peak_next = 0;           // and from one that is dropped as soon as it can be
  std::vector<double> cold;             // by memory, as `after`: all B, nothing of the block being there
  std::int64_t end_size = 0;            // of the end
  double end_forward = 0, forward = 0;  // F of the end, of the whole block

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
  std::int64_t most = 0;  // units in which nothing need be dropped, but for rounding
  std::vector<Block> blocks;
  std::vector<BlockKind> kinds;

  // Stretches of blocks [i, j), those with the same kinds sharing a number: what repeats is solved once.
  std::vector<std::size_t> stretch_of;                         // by i * (blocks + 1) + j
  std::vector<std::pair<std::size_t, std::size_t>> stretches;  // where each is met first

  std::size_t stretch(std::size_t i, std::size_t j) const { return stretch_of[i * (blocks.size() + 1) + j]; }
};

// Where the blocks of a graph begin and end, neighbours joined where there are more than `most`; none where some
// block would have too many nodes.
std::optional<std::vector<std::pair<std::size_t, std::size_t>>> block_bounds(
    std::span<const RecomputeNode> nodes, std::size_t most);

// What may be kept of a block, its end always: the first set is the end alone.
std::vector<std::uint32_t> kept_sets(const RecomputeModel& model);

// The most that a way forward holds at once, without its base, and with it until it is dropped.
std::pair<std::int64_t, std::int64_t> forward_peaks(const RecomputeModel& model, std::uint32_t kept,
                                                    std::int64_t base);

// Steps forward through a block that leave `kept` of it, and where asked not its base, which is node -1 here.
std::vector<RecomputeStep> way_forward(const RecomputeModel& model, std::uint32_t kept, bool drops_base);

// None where block_bounds() has none.
std::optional<Blocks> cut_into_blocks(const RecomputeGraph& graph);

}  // namespace weft::memory
