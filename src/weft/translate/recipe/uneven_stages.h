// weft/translate/recipe/uneven_stages.h -- Megatron's flags for pipeline stages with unequal numbers of layers.
//
//   --pipeline-model-parallel-layout 'Et*7|(t*8|)*14t*7L'      pipeline_layout.h
//   --decoder-first-pipeline-num-layers 7, --decoder-last-..   layers of the first and the last stage
//   --account-for-embedding-in-pipeline-split, .. -loss-..      the embedding or the loss counts as a layer
#pragma once
#include <cstdint>
#include <string_view>

#include "weft/base/result.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::recipe {

// Moves these flags from recipe.others to recipe.stage_layers. They stay in recipe.others, with their notes, if the
// number of layers is unknown or if a virtual stage has no layers; stages are then estimated as equal.
Status read_uneven_stages(Recipe& recipe);

// The value of a flag: a whole number of at least 1.
Result<std::int64_t> read_flag_count(std::string_view flag, std::string_view text);

}  // namespace weft::recipe
