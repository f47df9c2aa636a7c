// completion.h -- Tab completion, given the words that fit.
//
//   "SHOW M"   + {MODELS}            inserts MODELS and a space in place of M
//   "SHOW "    + {LAYERS, LINKS}     inserts their common beginning, L
//   "SHOW L"   + {LAYERS, LINKS}     nothing more in common: shows both
#pragma once
#include <string>
#include <vector>

#include "weft/app/session/session.h"

namespace weft {

struct Completion {
  std::size_t replaced = 0;          // bytes before the cursor that `insert` replaces
  std::string insert;                // empty: nothing to insert
  std::vector<std::string> choices;  // shown if nothing is inserted
};

Completion choose_completion(const session::Completions& found);

// The words in columns that fit a line of `width`. Every row ends in a newline.
std::string in_columns(const std::vector<std::string>& words, std::size_t width = 80);

}  // namespace weft
