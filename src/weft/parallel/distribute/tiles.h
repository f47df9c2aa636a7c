// weft/parallel/distribute/tiles.h -- an index cut into tiles, and which slices of a plan are such.
//
//   10 in 4 tiles      [0, 2) [2, 5) [5, 7) [7, 10)      they differ by one at most
//
// Slices that are the tiles of one value stay so at other sizes: the second of four is the second of four.
//
//   split %3 {along=s, into=i32[s_block=8,s=256]}     s read as the blocks that 8 ranks hold: of 2 ranks it is 2
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/seams.h"

namespace weft::distribute {

// REQUIRES: 0 < tiles <= size.
std::vector<Stretch> tiles_of(std::int64_t size, std::int64_t tiles);

// The slices that a plan has of its own, where those of one value are its tiles, all of them.
class TileSlices {
 public:
  // REQUIRES: the plan outlives it.
  explicit TileSlices(const DistributedPlan& plan);

  // What the slice is of an index of that size; nothing where it is no tile, or there are fewer elements than tiles.
  std::optional<Stretch> at(plan::NodeId slice, std::int64_t size) const;
  // By index: how many tiles there are at most, for each of so many blocks where the index is read as blocks.
  std::map<std::string, std::int64_t> most(std::int64_t blocks) const;

 private:
  struct Tile {
    std::int64_t number = 0, of = 0;
    std::string_view index = {};
    bool in_blocks = false;
  };

  std::map<plan::NodeId, Tile> tiles_;
};

// How many blocks of an index the ranks of `mesh` hold, where `split` reads one as the blocks that those of the
// plan's mesh hold; nothing where it is no such split.
std::optional<std::int64_t> blocks_at(const DistributedPlan& plan, const plan::NodeView& split,
                                      const plan::Mesh& mesh);

}  // namespace weft::distribute
