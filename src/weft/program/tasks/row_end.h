// weft/program/tasks/row_end.h -- detects a mask that shortens the rows of a group.
//
//   s = 0   x . . . .      softmax over t of scores where t <= s: everything beyond s is zero. So only
//   s = 1   x x . . .      s + 1 elements of a row are computed, and the rest of the stored row is
//   s = 2   x x x . .      filled with zeros
#pragma once
#include <optional>
#include <span>

#include "weft/program/tasks/row_code.h"

namespace weft::program {

// Empty if rows are whole, span several indices, or keep anything beyond the mask.
std::optional<RowEnd> find_row_end(const Group& group, std::span<const plan::Dim> outer,
                                   std::span<const plan::Dim> row, const RowCodeInputs& inputs);

}  // namespace weft::program
