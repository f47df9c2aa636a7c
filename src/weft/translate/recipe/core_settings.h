// weft/translate/recipe/core_settings.h -- configurations whose settings are Megatron Core's, under paths of
// their own.
//
// NeMo and Megatron Bridge pass tensor_model_parallel_size and its like to Megatron Core. They
// differ in where a configuration states them.
#pragma once
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/recipe/fields.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::recipe {

// Where each setting is; empty: the language has none.
struct CorePaths {
  std::string_view tensor, pipeline, virtual_stages, context, expert, expert_tensor;
  std::string_view sequence_parallel, pipeline_inside;
  std::string_view micro_batch, global_batch, sequence;
  std::string_view granularity, method, recompute_layers;
  std::string_view zero_1, sharding, copies;  // the distributed optimizer, and Megatron FSDP's strategy
  std::string_view overlap_reduce, overlap_gather, bucket, offload_optimizer;
  std::string_view layers, hidden, inner, heads, key_heads, experts;
  std::string_view devices, nodes;

  std::vector<std::string_view> all() const;
};

Status read_core(Fields& fields, const CorePaths& paths, Recipe& recipe);
Settings core_settings(const CorePaths& paths, const Recipe& recipe);
std::vector<std::string> core_lost(const CorePaths& paths, const Recipe& recipe);

// What all of Megatron Core's languages require of a recipe: each tensor-parallel rank has a whole
// key head, so their number is a multiple of the degree.
Status check_key_heads(const Recipe& recipe, std::string_view tensor, std::string_view key_heads);

}  // namespace weft::recipe
