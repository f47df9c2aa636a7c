// What each launcher really does: the plans that its configurations can express.
#include <algorithm>

#include <fmt/format.h>

#include "weft/translate/recipe/language.h"

namespace weft::recipe {
namespace {

// Attention needs whole key heads per tensor-parallel rank: Megatron Core and torchtitan refuse others.
bool slices_key_heads(const Recipe& recipe, const ModelShape& model) {
  return model.key_heads > 0 && model.key_heads % recipe.tensor != 0;
}

// Of the whole's divisors, the largest up to `parts`.
std::int64_t divisor_near(std::int64_t parts, std::int64_t whole) {
  std::int64_t divisor = std::min(parts, whole);
  while (whole % divisor != 0) --divisor;
  return divisor;
}

// With these Megatron accepts stages of different numbers of layers.
bool has_unequal_stages(const Recipe& recipe) {
  constexpr std::string_view kUnequal[] = {
      "pipeline-model-parallel-layout",          "pipeline_model_parallel_layout",
      "decoder-first-pipeline-num-layers",       "num_layers_in_first_pipeline_stage",
      "decoder-last-pipeline-num-layers",        "num_layers_in_last_pipeline_stage",
      "account-for-embedding-in-pipeline-split", "account_for_embedding_in_pipeline_split",
      "account-for-loss-in-pipeline-split",      "account_for_loss_in_pipeline_split"};
  return std::ranges::any_of(recipe.others, [&](const auto& other) {
    return std::ranges::any_of(kUnequal, [&](std::string_view flag) { return other.first.ends_with(flag); });
  });
}

// Megatron Core: 1F1B and interleaved schedules only. With a pipeline it shards at most the optimizer.
// One data-parallel rank has nothing to overlap.
std::optional<Recipe> in_megatron_core(Recipe recipe, const Recipe& today) {
  if (recipe.pipeline > 1 && recipe.zero > 1 && recipe.zero != today.zero) return std::nullopt;
  if (slices_key_heads(recipe, today.model)) return std::nullopt;
  if (!recipe.schedule.empty()) {
    recipe.schedule.clear();
    recipe.virtual_stages = 1;
  }
  if (recipe.data_degree() == 1 && recipe.context == 1) {
    recipe.overlap_reduce = recipe.overlap_gather = false;
    if (recipe.zero == 1 && today.zero != 1) recipe.zero = 0;
  }
  if (recipe.offload_parameters) return std::nullopt;
  return recipe;
}

std::optional<Recipe> in_nemo(const Recipe& recipe, const Recipe& today) {
  std::optional<Recipe> made = in_megatron_core(recipe, today);
  if (!made || today.dialect.empty()) return made;
  // NeMo 1 has the distributed optimizer as its only sharding.
  made->zero = std::min(made->zero, 1);
  made->copies = 1;
  made->expert_tensor = 0;
  made->bucket = today.bucket;
  if (made->offload_optimizer) return std::nullopt;
  return made;
}

std::optional<Recipe> in_torchtitan(Recipe recipe, const Recipe& today) {
  if (slices_key_heads(recipe, today.model)) return std::nullopt;
  if (recipe.schedule.empty() && recipe.virtual_stages > 2) recipe.virtual_stages = 2;
  if (recipe.schedule == kZeroBubble) recipe.virtual_stages = 2;
  if (!recipe.schedule.empty() && recipe.schedule != kZeroBubble && recipe.schedule != kAllForward)
    recipe.schedule.clear();
  recipe.sequence_parallel = recipe.tensor > 1;
  if (recipe.zero == 1) recipe.zero = 2;
  if (recipe.pipeline > 1 && recipe.zero == 3) recipe.zero = 2;
  recipe.order = kUsualOrder;
  recipe.bucket = 0;
  recipe.overlap_reduce = true;
  recipe.overlap_gather = recipe.zero > 0;
  recipe.recompute_layers = 0;
  // It offloads everything that is sharded, or nothing.
  if (recipe.offload_optimizer && recipe.zero == 0) return std::nullopt;
  recipe.offload_parameters = recipe.offload_optimizer && recipe.zero == 3;
  return recipe;
}

// The program, not ds_config.json, sets pipelines, experts, sequence parallelism, the rank order and
// where layers are checkpointed.
std::optional<Recipe> in_deepspeed(Recipe recipe, const Recipe& today) {
  if (recipe.pipeline > 1 && recipe.zero > 1 && recipe.zero != today.zero) return std::nullopt;
  if (recipe.pipeline != today.pipeline || recipe.virtual_stages != today.virtual_stages ||
      recipe.expert != today.expert || recipe.order != today.order)
    return std::nullopt;
  recipe.schedule = today.schedule;
  recipe.sequence_parallel = today.sequence_parallel;
  recipe.copies = 1;
  recipe.recompute = today.recompute;
  recipe.recompute_layers = 0;
  if (recipe.offload_optimizer && recipe.zero == 0) return std::nullopt;
  return recipe;
}

// FSDP and DDP, beside them TP without sequence parallelism and context parallelism.
std::optional<Recipe> in_accelerate(Recipe recipe, const Recipe& today) {
  if (recipe.pipeline > 1 || recipe.expert > 1 || slices_key_heads(recipe, today.model)) return std::nullopt;
  recipe.virtual_stages = 1;
  recipe.schedule.clear();
  recipe.expert_tensor = 0;
  recipe.sequence_parallel = false;
  if (recipe.zero == 1) recipe.zero = 2;
  if (recipe.recompute == Recompute::selective || recipe.zero == 0) recipe.recompute = Recompute::none;
  recipe.recompute_layers = 0;
  recipe.bucket = 0;
  recipe.order = kUsualOrder;
  recipe.overlap_reduce = true;
  recipe.overlap_gather = recipe.zero > 0;
  if (recipe.offload_optimizer && recipe.zero == 0) return std::nullopt;
  recipe.offload_parameters = recipe.offload_optimizer && recipe.zero == 3;
  return recipe;
}

// XLA overlaps collectives by itself. A pipeline runs all forward passes first, and experts are slices
// of the batch, too.
std::optional<Recipe> in_maxtext(Recipe recipe, const Recipe& today) {
  if (slices_key_heads(recipe, today.model)) return std::nullopt;
  if (recipe.virtual_stages != today.virtual_stages && recipe.virtual_stages > 1) return std::nullopt;
  recipe.schedule = recipe.pipeline > 1 ? std::string(kAllForward) : std::string();
  recipe.expert_tensor = 0;
  if (recipe.zero == 2 || (recipe.expert > 1 && recipe.zero < 3)) recipe.zero = 3;
  if (recipe.zero == 3 && recipe.data_degree() == recipe.copies) recipe.zero = 0;
  if (recipe.zero == 1 && recipe.data_degree() == 1) recipe.zero = 0;
  if (recipe.zero < 3) recipe.copies = 1;
  if (recipe.recompute == Recompute::none) recipe.recompute = Recompute::selective;
  recipe.recompute_layers = 0;
  recipe.bucket = 0;
  recipe.order = kUsualOrder;
  recipe.overlap_reduce = recipe.overlap_gather = true;
  return recipe;
}

}  // namespace

Status check_in(Language language, const Recipe& recipe) {
  const bool core =
      language == Language::megatron || language == Language::nemo || language == Language::bridge;
  if (language != Language::deepspeed && slices_key_heads(recipe, recipe.model))
    return user_error(
        fmt::format("tensor does not divide the key heads, as {} requires: {} and {}", name(language),
                    recipe.tensor, recipe.model.key_heads),
        fmt::format("the nearest degree that does: {}", divisor_near(recipe.tensor, recipe.model.key_heads)));
  const std::int64_t layers = recipe.model.layers;
  if (core && layers > 0 && layers % recipe.pipeline != 0 && recipe.stage_layers.empty() &&
      !has_unequal_stages(recipe))
    return user_error(fmt::format("pipeline does not divide the layers, as {} requires: {} and {}",
                                  name(language), recipe.pipeline, layers),
                      fmt::format("the nearest degree that does: {}", divisor_near(recipe.pipeline, layers)));
  return {};
}

std::optional<Recipe> expressible_in(Language language, Recipe recipe, const Recipe& today) {
  switch (language) {
    case Language::megatron:
    case Language::bridge: return in_megatron_core(std::move(recipe), today);
    case Language::nemo: return in_nemo(recipe, today);
    case Language::torchtitan: return in_torchtitan(std::move(recipe), today);
    case Language::deepspeed: return in_deepspeed(std::move(recipe), today);
    case Language::accelerate: return in_accelerate(std::move(recipe), today);
    case Language::maxtext: break;
  }
  return in_maxtext(std::move(recipe), today);
}

}  // namespace weft::recipe
