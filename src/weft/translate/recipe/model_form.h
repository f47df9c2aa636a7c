// weft/translate/recipe/model_form.h -- what kind of language model it is, for flags that describe it.
//
//   rms_norm(..), rotary(..), gate[d, f], up[d, f], down[f, d]    ->   RMSNorm, rope, swiglu, no biases
#pragma once
#include <cstdint>

#include "weft/parallel/distribute/index_roles.h"
#include "weft/plan/graph/graph.h"
#include "weft/translate/recipe/recipe.h"
#include "weft/translate/recipe/settings.h"

namespace weft::recipe {

struct ModelForm {
  bool rms_norm = false, rotary = false, learned_positions = false;
  bool gated = false, biases = false, query_biases = false;
  bool tied_output = false;         // the output product reads the embedding
  std::int64_t head_size = 0;       // 0: not found
  std::int64_t chosen_experts = 0;  // per token; 0: no experts
};

// `shape`: model_shape() of the same graph.
ModelForm model_form(const plan::Graph& graph, const distribute::IndexRoles& roles, const ModelShape& shape);

// Megatron-LM's flags for the form: "normalization" "RMSNorm", "swiglu" "", ...
Settings megatron_form_flags(const ModelForm& form, const ModelShape& shape);

}  // namespace weft::recipe
