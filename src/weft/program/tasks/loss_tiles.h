// weft/program/tasks/loss_tiles.h -- how linear-cross-entropy goes: rows tile by tile, each in four passes, or the first two.
//
//             classes ->              logits   of a stretch of classes         tile = hidden words^T
//   rows  [ . . . . | . . . . ]       slopes   of some rows of the tile        losses; tile = softmax - one at the label
//     |   [ . . . . | . . . . ]       hidden   of some rows of the tile        dhidden = tile words
//     v       tile of a step          words    of a stretch of words           dwords += tile^T hidden
//
// and at the end the sum of the losses. A pass is cut in as many parts as there are workers; parts of a pass are
// independent, a pass waits for the one before it. The tile lies in the call's room, stretch by stretch, each with
// its rows one after the other; behind it the loss of each row.
#pragma once
#include <cstdint>

#include "weft/plan/graph/graph.h"
#include "weft/program/tasks/band.h"

namespace weft::program {

struct LossTiles {
  enum class Pass : std::uint8_t { logits, slopes, hidden, words, sum };
  struct Item {
    Pass pass = Pass::logits;
    Range rows;   // of the tile
    Range share;  // classes; rows; rows; words, by what runs slowest in them; nothing
  };

  std::int64_t rows = 0, classes = 0, width = 0;
  std::int64_t tile = 0;  // rows of a tile, the last perhaps fewer
  bool by_class = true;   // whether words are [classes, width] rather than [width, classes]
  std::int64_t parts = 1;
  std::int64_t passes = 4;  // 2: the losses alone, and no slopes of hidden and words

  std::int64_t tiles() const;
  std::int64_t items() const;
  Item item(std::int64_t at) const;
  Range stretch(std::int64_t part) const;  // of classes

  std::int64_t room() const { return tile * classes + rows; }  // elements
  std::int64_t loss_at(std::int64_t row) const { return tile * classes + row; }
};

// In no more parts than there are classes. REQUIRES: the node is a linear-cross-entropy.
LossTiles loss_tiles(const plan::NodeView& node, std::int64_t parts = 1);

}  // namespace weft::program
