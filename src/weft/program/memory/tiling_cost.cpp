#include "weft/program/memory/tiling_cost.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace weft::memory {
namespace {

std::int64_t parts(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

// The operators of a step in reverse topological order.
std::vector<std::int32_t> readers_first(const TilingProblem& problem,
                                        std::span<const std::int32_t> operators) {
  std::map<std::int32_t, std::int32_t> maker;  // by tensor, within the step
  for (const std::int32_t op : operators) maker[problem.operators[static_cast<std::size_t>(op)].output] = op;
  std::vector<std::int32_t> order;
  std::map<std::int32_t, bool> seen;
  const auto visit = [&](const auto& self, std::int32_t op) -> void {
    if (std::exchange(seen[op], true)) return;
    for (const std::int32_t input : problem.operators[static_cast<std::size_t>(op)].inputs)
      if (const auto at = maker.find(input); at != maker.end()) self(self, at->second);
    order.push_back(op);
  };
  for (const std::int32_t op : operators) visit(visit, op);
  std::ranges::reverse(order);
  return order;
}

struct TileSize {
  std::int64_t width = 0, height = 0;
};

// A pointwise input that is smaller than the output is read repeatedly.
std::int64_t along(Extent extent, std::int64_t tile, std::int64_t strip, std::int64_t all) {
  return extent == Extent::all ? all : std::min(all, extent == Extent::tile ? tile : strip);
}

std::int64_t slice_elements(const TilingProblem& problem, const TilingSlice& slice, TileSize tile,
                            std::int64_t strip) {
  const auto t = static_cast<std::size_t>(slice.tensor);
  return along(slice.width, tile.width, strip, problem.widths[t]) *
         along(slice.height, tile.height, strip, problem.heights[t]);
}

bool streams(const TilingSlice& slice) {
  return slice.width == Extent::strip || slice.height == Extent::strip;
}

// The time of each tile: what each strip loads, computes and stores.
class TileClock {
 public:
  TileClock(const TilingProblem& problem, const TilingShape& shape, const TilingStep& tile,
            const TilingResidence& residence)
      : problem_(problem), shape_(shape), depth_(tile.depth), strips_(parts(shape.deepest, tile.depth)) {
    for (const TilingSlice& slice : shape.read)
      if (!residence.before[static_cast<std::size_t>(slice.tensor)]) loaded_.push_back(slice);
    for (const std::int32_t tensor : shape.written)
      if (!residence.after[static_cast<std::size_t>(tensor)]) ++stored_;
  }

  const std::vector<TilingSlice>& loaded() const { return loaded_; }
  bool in_one_strip(const TilingSlice& slice) const { return parts(slice.reduction, depth_) <= 1; }

  // `kept`: a bit per loaded slice that is left from the previous tile.
  double latency(TileSize size, std::uint64_t kept) const {
    double total = 0;
    // Strips between the first and the last are equal as long as they are full and no reduction
    // ends.
    for (std::int64_t strip = 0; strip < strips_;) {
      std::int64_t same = 1;
      if (strip > 0 && strip + 1 < strips_) {
        std::int64_t until = strips_ - 1;
        for (const TilingSlice& slice : loaded_)
          if (slice.reduction > 0)
            for (const std::int64_t edge : {slice.reduction / depth_, parts(slice.reduction, depth_)})
              if (edge > strip) until = std::min(until, edge);
        for (const TilingWork& work : shape_.work)
          if (work.reduction > 0 && parts(work.reduction, depth_) > strip)
            until = std::min(until, parts(work.reduction, depth_));
        same = std::max<std::int64_t>(1, until - strip);
      }
      total += static_cast<double>(same) * one_strip(size, kept, strip);
      strip += same;
    }
    return total;
  }

 private:
  double one_strip(TileSize size, std::uint64_t kept, std::int64_t strip) const {
    std::int64_t moved = 0;
    for (std::size_t i = 0; i < loaded_.size(); ++i) {
      const TilingSlice& slice = loaded_[i];
      const std::int64_t begin = strip * depth_;
      if (strip == 0 ? i < 64 && (kept >> i & 1) != 0 : !streams(slice) || begin >= slice.reduction) continue;
      moved += slice_elements(problem_, slice, size, std::min(depth_, slice.reduction - begin));
    }
    if (strip + 1 == strips_) moved += stored_ * size.width * size.height;
    double compute = 0;
    for (const TilingWork& work : shape_.work) {
      const std::int64_t shared = work.reduction > 0 ? parts(work.reduction, depth_) : 1;
      const std::int64_t first = work.after_products ? strips_ - 1 : 0;
      if (strip < first || strip >= first + shared) continue;
      const auto t = static_cast<std::size_t>(work.made.tensor);
      const std::int64_t natives =
          parts(along(work.made.width, size.width, work.made.reduction, problem_.widths[t]),
                problem_.native_width) *
          parts(along(work.made.height, size.height, work.made.reduction, problem_.heights[t]),
                problem_.native_height);
      compute += problem_.operators[static_cast<std::size_t>(work.index)].base_cost *
                 static_cast<double>(natives) / static_cast<double>(shared);
    }
    return std::max(compute, static_cast<double>(moved) / problem_.bandwidth);
  }

  const TilingProblem& problem_;
  const TilingShape& shape_;
  const std::int64_t depth_, strips_;
  std::vector<TilingSlice> loaded_;
  std::int64_t stored_ = 0;
};

}  // namespace

Result<TilingShape> shape_of(const TilingProblem& problem, std::span<const std::int32_t> operators,
                             const std::vector<bool>& is_written) {
  TilingShape shape;
  std::map<std::int32_t, std::vector<TilingSlice>> wanted;  // by tensor
  std::vector<bool> made(problem.widths.size());
  for (const std::int32_t op : operators) {
    const std::int32_t tensor = problem.operators[static_cast<std::size_t>(op)].output;
    made[static_cast<std::size_t>(tensor)] = true;
    if (!is_written[static_cast<std::size_t>(tensor)]) continue;
    const std::int64_t width = problem.widths[static_cast<std::size_t>(tensor)],
                       height = problem.heights[static_cast<std::size_t>(tensor)];
    if (!shape.written.empty() && (width != shape.width || height != shape.height))
      return user_error(fmt::format("outputs of a step must have the same size, found {} x {} and {} x {}",
                                    shape.width, shape.height, width, height));
    shape.width = width, shape.height = height;
    shape.written.push_back(tensor);
    wanted[tensor].push_back({tensor, Extent::tile, Extent::tile, 0});
  }
  if (shape.written.empty()) return user_error("a step has no output that others need");
  std::vector<bool> after_product(problem.widths.size());  // tensors that hold the tile of a finished product
  const auto want = [&](TilingSlice slice) {
    if (slice.width != Extent::strip && slice.height != Extent::strip) slice.reduction = 0;
    auto& slices = made[static_cast<std::size_t>(slice.tensor)] ? wanted[slice.tensor] : shape.read;
    if (std::ranges::find(slices, slice) == slices.end()) slices.push_back(slice);
  };
  for (const std::int32_t op : readers_first(problem, operators)) {
    const TilingOperator& own = problem.operators[static_cast<std::size_t>(op)];
    for (const TilingSlice slice : std::vector(wanted[own.output])) {
      const bool is_tile = slice.width == Extent::tile && slice.height == Extent::tile;
      TilingWork work{op, slice, slice.reduction, false};
      if (!own.product) {
        for (const std::int32_t input : own.inputs) want({input, slice.width, slice.height, slice.reduction});
      } else {
        const std::int64_t reduction = problem.widths[static_cast<std::size_t>(own.inputs[0])];
        const Extent over = is_tile ? Extent::strip : Extent::all;
        want({own.inputs[0], over, slice.height, is_tile ? reduction : slice.reduction});
        want({own.inputs[1], slice.width, over, is_tile ? reduction : slice.reduction});
        if (is_tile) {
          work.reduction = reduction;
          ++shape.accumulators;
          shape.deepest = std::max(shape.deepest, reduction);
          after_product[static_cast<std::size_t>(own.output)] = true;
        }
      }
      shape.work.push_back(work);
    }
  }
  // Drops strips of tensors that are also read whole.
  const auto covers = [](Extent more, Extent less) {
    return more == less || (more == Extent::all && less == Extent::strip);
  };
  const std::vector<TilingSlice> all_read = shape.read;
  std::erase_if(shape.read, [&](const TilingSlice& slice) {
    return std::ranges::any_of(all_read, [&](const TilingSlice& other) {
      return other.tensor == slice.tensor && !(other == slice) && covers(other.width, slice.width) &&
             covers(other.height, slice.height);
    });
  });
  // In topological order: a pointwise tile after a product waits for the product's last strip.
  for (std::size_t i = shape.work.size(); i-- > 0;) {
    TilingWork& work = shape.work[i];
    const TilingOperator& own = problem.operators[static_cast<std::size_t>(work.index)];
    if (own.product || work.made.width != Extent::tile || work.made.height != Extent::tile) continue;
    for (const std::int32_t input : own.inputs)
      work.after_products = work.after_products || after_product[static_cast<std::size_t>(input)];
    if (work.after_products) after_product[static_cast<std::size_t>(own.output)] = true;
  }
  return shape;
}

std::int64_t elements_held(const TilingProblem& problem, const TilingShape& shape, const TilingStep& tile,
                           const TilingResidence& residence) {
  const TileSize size{std::min(tile.width, shape.width), std::min(tile.height, shape.height)};
  std::int64_t held = 0, tiles_read = shape.accumulators, tiles_written = 0;
  for (std::size_t t = 0; t < problem.widths.size(); ++t)
    if (residence.before[t] || residence.after[t]) held += problem.elements(static_cast<std::int32_t>(t));
  for (const TilingSlice& slice : shape.read) {
    const auto t = static_cast<std::size_t>(slice.tensor);
    if (residence.before[t] || residence.after[t]) continue;
    if (slice.width == Extent::tile && slice.height == Extent::tile)
      ++tiles_read;
    else
      held += slice_elements(problem, slice, size, std::min(tile.depth, slice.reduction));
  }
  for (const std::int32_t tensor : shape.written)
    if (!residence.after[static_cast<std::size_t>(tensor)]) ++tiles_written;
  // Written tiles reuse the space of tiles that were read.
  return held + std::max(tiles_read, tiles_written) * size.width * size.height;
}

std::vector<std::int32_t> tile_order(const TilingShape& shape, const TilingStep& tile, TileOrder order) {
  const auto columns = static_cast<std::int32_t>(parts(shape.width, tile.width)),
             rows = static_cast<std::int32_t>(parts(shape.height, tile.height));
  std::vector<std::int32_t> tiles;
  if (order == TileOrder::rows)
    for (std::int32_t row = 0; row < rows; ++row)
      for (std::int32_t i = 0; i < columns; ++i)
        tiles.push_back(row * columns + (row % 2 == 0 ? i : columns - 1 - i));
  if (order == TileOrder::columns)
    for (std::int32_t column = 0; column < columns; ++column)
      for (std::int32_t i = 0; i < rows; ++i)
        tiles.push_back((column % 2 == 0 ? i : rows - 1 - i) * columns + column);
  return tiles;
}

double latency_of(const TilingProblem& problem, const TilingShape& shape, const TilingStep& tile,
                  const TilingResidence& residence, std::span<const std::int32_t> order) {
  const std::int64_t columns = parts(shape.width, tile.width), rows = parts(shape.height, tile.height);
  const TileClock clock(problem, shape, tile, residence);
  std::map<std::tuple<std::int64_t, std::int64_t, std::uint64_t>, double> known;
  double total = 0;
  std::int64_t last_row = -1, last_column = -1;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const std::int64_t at = order.empty() ? i : order[static_cast<std::size_t>(i)];
    const std::int64_t row = at / columns, column = at % columns;
    const TileSize size{std::min(tile.width, shape.width - column * tile.width),
                        std::min(tile.height, shape.height - row * tile.height)};
    std::uint64_t kept = 0;
    if (!order.empty() && i > 0)
      for (std::size_t s = 0; s < clock.loaded().size() && s < 64; ++s) {
        const TilingSlice& slice = clock.loaded()[s];
        const bool same = (slice.width != Extent::tile || column == last_column) &&
                          (slice.height != Extent::tile || row == last_row) &&
                          (!streams(slice) || clock.in_one_strip(slice));
        if (same) kept |= std::uint64_t{1} << s;
      }
    const auto [place, is_new] = known.try_emplace({size.width, size.height, kept}, 0);
    if (is_new) place->second = clock.latency(size, kept);
    total += place->second;
    last_row = row, last_column = column;
  }
  return total;
}

}  // namespace weft::memory
