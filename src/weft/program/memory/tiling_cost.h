// weft/program/memory/tiling_cost.h -- the reads, writes, memory and cost of one tiling step.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/memory/tiling.h"

namespace weft::memory {

// The part of a tensor that a tile of a step needs along one axis: the tile's own part, one strip
// of the reduction after another, or all of it.
enum class Extent : std::uint8_t { tile, strip, all };

struct TilingSlice {
  std::int32_t tensor = 0;
  Extent width = Extent::tile, height = Extent::tile;
  std::int64_t reduction = 0;  // size of the reduction along which strips run; 0: none

  friend bool operator==(const TilingSlice&, const TilingSlice&) = default;
};

// An operator's work per tile.
struct TilingWork {
  std::int32_t index = 0;       // operator number
  TilingSlice made;             // of its output
  std::int64_t reduction = 0;   // the reduction whose strips share the work; 0: done at once
  bool after_products = false;  // at once, but only after the last strip
};

// The properties of a step that do not depend on the tile.
struct TilingShape {
  std::vector<TilingSlice> read;      // from outside
  std::vector<std::int32_t> written;  // tensors that it stores
  std::vector<TilingWork> work;
  std::int64_t width = 0, height = 0;  // of all tensors written
  std::int64_t deepest = 1;            // largest reduction
  std::int64_t accumulators = 0;       // products whose result is the tile
};

enum class TileOrder : std::uint8_t { plain, rows, columns };  // back and forth along rows or columns

// `is_written`: tensors made here that others need. Fails if those differ in size.
Result<TilingShape> shape_of(const TilingProblem& problem, std::span<const std::int32_t> operators,
                             const std::vector<bool>& is_written);

struct TilingResidence {
  std::vector<bool> before, after;  // whole tensors in fast memory
};

// Elements held at once, including residents.
std::int64_t elements_held(const TilingProblem& problem, const TilingShape& shape, const TilingStep& tile,
                           const TilingResidence& residence);

// The step's latency with this tile order; empty: row by row, with nothing kept between tiles.
double latency_of(const TilingProblem& problem, const TilingShape& shape, const TilingStep& tile,
                  const TilingResidence& residence, std::span<const std::int32_t> order);

std::vector<std::int32_t> tile_order(const TilingShape& shape, const TilingStep& tile, TileOrder order);

}  // namespace weft::memory
