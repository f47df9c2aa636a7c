// weft/planner/statement/small_sizes.h -- find small sizes that a model accepts, by name.
//
//   gpt3_175b    b = 1, s = 2048, d = 12288, h = 96, v = 50257, p = 2048
//                b = 3, s = 5, d = 8, h = 4, v = 6, p = 7
//
// Avoids choices that could hide an error: indices of one element, equal sizes, and sizes that all
// divide evenly among ranks. Only the model knows which sizes fit together (d / h must be whole).
// So the search starts from accepted sizes, changes one at a time, or two in proportion, and binds
// the model again. REPEAT runs once meanwhile.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/language/bind.h"
#include "weft/planner/statement/prepare.h"

namespace weft::planner {

struct SmallSizesWanted {
  language::Mode mode = language::Mode::infer;
  std::int64_t multiple = 1;                            // changed sizes are multiples of this
  std::vector<language::SizeOverride> other_than = {};  // sizes that should change
  std::map<std::string, std::int64_t> at_least = {};    // by index: tiles need at least one element
};

// The sizes to bind the model with, except those that follow from others. Nothing if large sizes
// have no names in the model.
std::optional<std::vector<language::SizeOverride>> find_small_sizes(const Knowledge& state,
                                                                    const Prepared& prepared,
                                                                    const SmallSizesWanted& wanted);

}  // namespace weft::planner
