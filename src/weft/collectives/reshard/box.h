// weft/collectives/reshard/box.h -- blocks of a tensor, and stretches of their elements as blocks again.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/plan/graph/layout.h"

namespace weft::reshard {

// One share for each dim of the tensor.
using Box = std::vector<plan::Share>;

std::int64_t elements_of(const Box& box);

// The elements [begin, end) of a box, the last dim fastest: at most 2 * dims - 1 boxes, in order.
std::vector<Box> boxes_of_range(const Box& box, std::int64_t begin, std::int64_t end);

// The last element not after `at` where a row of at most `most` elements begins, of the longest such rows:
// ranges that are cut there are fewer boxes. REQUIRES: the box is not empty.
std::int64_t whole_rows(const Box& box, std::int64_t at, std::int64_t most);

}  // namespace weft::reshard
