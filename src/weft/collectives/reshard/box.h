// weft/collectives/reshard/box.h -- boxes (blocks of a tensor), and ranges of their elements.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/plan/graph/layout.h"

namespace weft::reshard {

// One share per dim of the tensor.
using Box = std::vector<plan::Share>;

std::int64_t elements_of(const Box& box);

// Covers the elements [begin, end) of a box in row-major order by at most 2 * dims - 1 boxes, in
// order.
std::vector<Box> boxes_of_range(const Box& box, std::int64_t begin, std::int64_t end);

// The last row start not after `at`, for the longest rows with at most `most` elements. Ranges cut
// there consist of fewer boxes.
// REQUIRES: the box is not empty.
std::int64_t whole_rows(const Box& box, std::int64_t at, std::int64_t most);

}  // namespace weft::reshard
