// weft/planner/statement/small_sizes.h -- small sizes that a model accepts, by the names it has for them.
//
//   gpt3_175b    b = 1, s = 2048, d = 12288, h = 96, v = 50257, p = 2048
//                b = 3, s = 5, d = 8, h = 4, v = 6, p = 7
//
// What would hide a mistake is avoided: an index of one element, two of one size, sizes that all divide
// evenly among ranks. Which sizes go together (d / h must be whole) only the model knows: from sizes that it
// accepts, one is changed at a time, or two in proportion, and the model is asked. REPEAT goes round once
// meanwhile.
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
  std::int64_t multiple = 1;                            // each size that changes becomes one of this
  std::vector<language::SizeOverride> other_than = {};  // sizes to differ from, one by one
  std::map<std::string, std::int64_t> at_least = {};    // of some indices: tiles are of one element or more
};

// The sizes to bind the model with; those that follow from others are left to follow. Nothing where the model
// has no names for what is large.
std::optional<std::vector<language::SizeOverride>> find_small_sizes(const Knowledge& state,
                                                                    const Prepared& prepared,
                                                                    const SmallSizesWanted& wanted);

}  // namespace weft::planner
