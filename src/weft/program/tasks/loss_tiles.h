// weft/program/tasks/loss_tiles.h -- tiling of linear-cross-entropy.
//
//             classes ->              logits   of a range of classes      tile = hidden words^T
//   rows  [ . . . . | . . . . ]       slopes   of some rows of the tile   losses; tile = softmax - one-hot label
//     |   [ . . . . | . . . . ]       hidden   of some rows of the tile   dhidden = tile words
//     v       one tile                words    of a range of words        dwords += tile^T hidden
//
// Each row tile takes four passes, or only the first two. At the end, the losses are summed. A pass
// is split into one part per worker. Parts of a pass are independent; a pass waits for the one
// before. The tile is stored in the call's scratch buffer, range by range, each row-major; the
// losses of all rows follow.
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
    Range share;  // classes; rows; rows; words, by their slowest index; nothing
  };

  std::int64_t rows = 0, classes = 0, width = 0;
  std::int64_t tile = 0;  // rows per tile; the last may have fewer
  bool by_class = true;   // whether words are [classes, width] instead of [width, classes]
  std::int64_t parts = 1;
  std::int64_t passes = 4;  // 2: only the losses, without gradients of hidden and words

  std::int64_t tiles() const;
  std::int64_t items() const;
  Item item(std::int64_t at) const;
  Range stretch(std::int64_t part) const;  // of classes

  std::int64_t room() const { return tile * classes + rows; }  // elements
  std::int64_t loss_at(std::int64_t row) const { return tile * classes + row; }
};

// With at most as many parts as classes. REQUIRES: the node is a linear-cross-entropy.
LossTiles loss_tiles(const plan::NodeView& node, std::int64_t parts = 1);

}  // namespace weft::program
