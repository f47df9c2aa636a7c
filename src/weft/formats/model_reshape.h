// weft/formats/model_reshape.h -- a reshape as blocks of dims with as many elements before as after.
//
//   [8, 128, 12, 64] -> [8, 128, 768]       8 | 128 | 12, 64        a block of two is merged
//                                           8 | 128 | 768
//
// Every block is as small as can be, but for sizes of 1, which end with the block before them.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "weft/formats/model_file.h"

namespace weft::formats {

struct ReshapeBlock {
  std::size_t from = 0, from_count = 0;  // places before
  std::size_t to = 0, to_count = 0;      // and after
};

// REQUIRES: as many elements before as after.
std::vector<ReshapeBlock> reshape_blocks(const ModelShape& from, const ModelShape& to);

// The one place of [first, first + count) that is larger than 1; where all are 1, the first. Nothing when
// there are several.
std::optional<std::size_t> only_place(const ModelShape& shape, std::size_t first, std::size_t count);

}  // namespace weft::formats
