// weft/translate/recipe/pipeline_layout.h -- the layers of each virtual stage, as Megatron Core writes them.
//
//   Et*7|(t*8|)*14t*7L     7, 8, .., 8, 7 layers on 16 virtual stages, with the embedding and the loss
//
//   E embedding, t a layer, m a layer that predicts further tokens, L loss; | between virtual stages in the order in
//   which a micro-batch passes them; *3 repeats a letter or a group in parentheses; commas and spaces are ignored
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::recipe {

// Layers by virtual stage. Fails where the embedding is not first or the loss is not last.
Result<std::vector<std::int64_t>> read_pipeline_layout(std::string_view text);
// REQUIRES: at least one virtual stage.
std::string print_pipeline_layout(std::span<const std::int64_t> layers);

}  // namespace weft::recipe
