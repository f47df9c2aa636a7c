// weft/parallel/distribute/tiles.h -- splits an index into tiles and finds such slices.
//
//   10 in 4 tiles      [0, 2) [2, 5) [5, 7) [7, 10)      sizes differ by at most one
//
// Slices that are the tiles of a value stay tiles at other sizes: the second of four is the second
// of four.
//
//   split %3 {along=s, into=i32[s_block=8,s=256]}     s as the blocks of 8 ranks; of 2: s_block=2
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/parallel/distribute/concat_boundaries.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::distribute {

// REQUIRES: 0 < tiles <= size.
std::vector<Stretch> tiles_of(std::int64_t size, std::int64_t tiles);

// The plan's own slices that together are exactly the tiles of a value.
class TileSlices {
 public:
  // REQUIRES: the plan outlives it.
  explicit TileSlices(const DistributedPlan& plan);

  // The bounds of the slice for an index of that size; empty if it is not a tile or there are fewer
  // elements than tiles.
  std::optional<Stretch> at(plan::NodeId slice, std::int64_t size) const;
  // By index: the largest number of tiles; multiplied by `blocks` if the index is viewed as blocks.
  std::map<std::string, std::int64_t> most(std::int64_t blocks) const;

 private:
  struct Tile {
    std::int64_t number = 0, of = 0;
    std::string_view index = {};
    bool in_blocks = false;
  };

  std::map<plan::NodeId, Tile> tiles_;
};

// The number of blocks for `mesh`, if `split` views an index as the blocks held by the ranks of the
// plan's mesh; empty if it is not such a split.
std::optional<std::int64_t> blocks_at(const DistributedPlan& plan, const plan::NodeView& split,
                                      const plan::Mesh& mesh);

}  // namespace weft::distribute
