// weft/program/tasks/row_end.h -- whether a mask cuts the rows of a group short.
//
//   s = 0   x . . . .      softmax over t of scores where t <= s: what lies past s is zero, so a row of
//   s = 1   x x . . .      s + 1 places does, and the rest of what is stored is filled with zeros
//   s = 2   x x x . .
#pragma once
#include <optional>
#include <span>

#include "weft/program/tasks/row_code.h"

namespace weft::program {

// Nothing where rows are whole, run over several indices, or keep anything of what lies past the mask.
std::optional<RowEnd> find_row_end(const Group& group, std::span<const plan::Dim> outer,
                                   std::span<const plan::Dim> row, const RowCodeInputs& inputs);

}  // namespace weft::program
