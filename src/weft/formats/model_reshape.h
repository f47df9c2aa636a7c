// weft/formats/model_reshape.h -- splits a reshape into blocks of dims with equal numbers of
// elements.
//
//   [8, 128, 12, 64] -> [8, 128, 768]       8 | 128 | 12, 64        a block of two is merged
//                                           8 | 128 | 768
//
// Blocks are as small as possible. Sizes of 1 belong to the block before them.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "weft/formats/model_file.h"

namespace weft::formats {

struct ReshapeBlock {
  std::size_t from = 0, from_count = 0;  // dims before the reshape
  std::size_t to = 0, to_count = 0;      // dims after it
};

// REQUIRES: both shapes have the same number of elements.
std::vector<ReshapeBlock> reshape_blocks(const ModelShape& from, const ModelShape& to);

// The only dim of [first, first + count) that is larger than 1; if all are 1, the first. Nothing if
// there are several.
std::optional<std::size_t> only_place(const ModelShape& shape, std::size_t first, std::size_t count);

}  // namespace weft::formats
