// weft/program/memory/tiling_cost.h -- one step of tiling.h by itself: what it reads, writes and holds, and what it costs.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/memory/tiling.h"

namespace weft::memory {

// Which part of a tensor a tile of a step needs, along one axis: what belongs to the tile, a strip of the reduction
// after the other, or all of it.
enum class Extent : std::uint8_t { tile, strip, all };

struct TilingSlice {
  std::int32_t tensor = 0;
  Extent width = Extent::tile, height = Extent::tile;
  std::int64_t reduction = 0;  // along which strips run; 0 where none does

  friend bool operator==(const TilingSlice&, const TilingSlice&) = default;
};

// An operator's work for a tile.
struct TilingWork {
  std::int32_t index = 0;       // of the operator
  TilingSlice made;             // of its output
  std::int64_t reduction = 0;   // whose strips share the work; 0: done at once
  bool after_products = false;  // at once, but only when the last strip is done
};

// What a step does whatever its tile is.
struct TilingShape {
  std::vector<TilingSlice> read;      // from outside
  std::vector<std::int32_t> written;  // tensors that it leaves
  std::vector<TilingWork> work;
  std::int64_t width = 0, height = 0;  // of all that are written
  std::int64_t deepest = 1;            // reduction
  std::int64_t accumulators = 0;       // products whose result is the tile
};

enum class TileOrder : std::uint8_t { plain, rows, columns };  // back and forth along rows or columns

// `is_written`: which of the tensors made are needed by others. Fails where those differ in size.
Result<TilingShape> shape_of(const TilingProblem& problem, std::span<const std::int32_t> operators,
                             const std::vector<bool>& is_written);

struct TilingResidence {
  std::vector<bool> before, after;  // tensors in fast memory, whole
};

// Held at once, residents included.
std::int64_t elements_held(const TilingProblem& problem, const TilingShape& shape, const TilingStep& tile,
                           const TilingResidence& residence);

// The step's latency, tiles in this order; empty: along rows, and nothing kept between them.
double latency_of(const TilingProblem& problem, const TilingShape& shape, const TilingStep& tile,
                  const TilingResidence& residence, std::span<const std::int32_t> order);

std::vector<std::int32_t> tile_order(const TilingShape& shape, const TilingStep& tile, TileOrder order);

}  // namespace weft::memory
