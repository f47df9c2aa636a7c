#include "weft/program/tasks/loss_tiles.h"

#include <algorithm>

#include "weft/plan/ops/linear_loss_shape.h"

namespace weft::program {
namespace {

// Rows per tile. With fewer, the gradient of the words, to which every tile adds, would be moved
// too often.
constexpr std::int64_t kLossTile = 512;
constexpr std::int64_t kPassesOfLosses = 2;

Range share_of_range(Range whole, std::int64_t part, std::int64_t parts) {
  const std::int64_t size = whole.end - whole.begin;
  return {whole.begin + size * part / parts, whole.begin + size * (part + 1) / parts};
}

}  // namespace

std::int64_t LossTiles::tiles() const { return tile == 0 ? 0 : (rows + tile - 1) / tile; }

std::int64_t LossTiles::items() const { return tiles() * passes * parts + 1; }

Range LossTiles::stretch(std::int64_t part) const { return share_of_range({0, classes}, part, parts); }

LossTiles::Item LossTiles::item(std::int64_t at) const {
  if (at + 1 >= items()) return {Pass::sum, {0, rows}, {}};
  Item item;
  const std::int64_t part = at % parts, first = at / parts / passes * tile;
  item.pass = static_cast<Pass>(at / parts % passes);
  item.rows = {first, std::min(first + tile, rows)};
  switch (item.pass) {
    case Pass::logits: item.share = stretch(part); break;
    case Pass::words: item.share = by_class ? stretch(part) : share_of_range({0, width}, part, parts); break;
    default: item.share = share_of_range(item.rows, part, parts); break;
  }
  return item;
}

LossTiles loss_tiles(const plan::NodeView& node, std::int64_t parts) {
  const ops::LinearLossShape of = ops::classifying(node);
  LossTiles tiles{.rows = of.row_count(), .classes = of.over.size, .width = of.width()};
  const std::int64_t count = std::max<std::int64_t>((tiles.rows + kLossTile - 1) / kLossTile, 1);
  tiles.tile = (tiles.rows + count - 1) / count;
  if (!of.slopes) tiles.passes = kPassesOfLosses;
  tiles.by_class = node.input_type(1).position(of.over.index) == 0;
  tiles.parts = std::clamp<std::int64_t>(parts, 1, std::max<std::int64_t>(tiles.classes, 1));
  return tiles;
}

}  // namespace weft::program
