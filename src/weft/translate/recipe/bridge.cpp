// Megatron Bridge: overrides of its ConfigContainer, or the same as YAML. It passes them to Megatron Core.
#include <algorithm>

#include <fmt/format.h>

#include "weft/formats/value.h"
#include "weft/translate/recipe/core_settings.h"
#include "weft/translate/recipe/languages.h"

namespace weft::recipe {
namespace {

CorePaths bridge_paths() {
  return {.tensor = "model.tensor_model_parallel_size",
          .pipeline = "model.pipeline_model_parallel_size",
          .virtual_stages = "model.virtual_pipeline_model_parallel_size",
          .context = "model.context_parallel_size",
          .expert = "model.expert_model_parallel_size",
          .expert_tensor = "model.expert_tensor_parallel_size",
          .sequence_parallel = "model.sequence_parallel",
          .pipeline_inside = "dist.use_tp_pp_dp_mapping",
          .micro_batch = "train.micro_batch_size",
          .global_batch = "train.global_batch_size",
          .sequence = "model.seq_length",
          .granularity = "model.recompute_granularity",
          .method = "model.recompute_method",
          .recompute_layers = "model.recompute_num_layers",
          .zero_1 = "ddp.use_distributed_optimizer",
          .sharding = "ddp.data_parallel_sharding_strategy",
          .copies = "ddp.num_distributed_optimizer_instances",
          .overlap_reduce = "ddp.overlap_grad_reduce",
          .overlap_gather = "ddp.overlap_param_gather",
          .bucket = "ddp.bucket_size",
          .offload_optimizer = "optimizer.optimizer_cpu_offload",
          .layers = "model.num_layers",
          .hidden = "model.hidden_size",
          .inner = "model.ffn_hidden_size",
          .heads = "model.num_attention_heads",
          .key_heads = "model.num_query_groups",
          .experts = "model.num_moe_experts",
          .devices = {},  // torchrun's
          .nodes = {}};
}

constexpr std::string_view kPrecision = "mixed_precision", kDatasetSequence = "dataset.sequence_length",
                           kFsdp = "ddp.use_megatron_fsdp";

std::string_view bridge_precision(Precision precision) {
  switch (precision) {
    case Precision::f32: return "null";
    case Precision::f16: return "fp16_mixed";
    case Precision::bf16: return "bf16_mixed";
    case Precision::nvfp4: return "bf16_with_nvfp4_mixed";
    case Precision::fp8: break;
  }
  return "bf16_with_fp8_delayed_scaling_mixed";
}

}  // namespace

Result<Recipe> read_bridge(std::string_view text) {
  WEFT_TRY(fields, Fields::read(text));
  Recipe recipe;
  const CorePaths paths = bridge_paths();
  for (const std::string_view path :
       {"trainer.strategy.tensor_model_parallel_size", "data.global_batch_size"})
    if (fields.has(path))
      return user_error(fmt::format("{} is a setting of NeMo 2, not of Megatron Bridge", path), "--nemo");
  WEFT_TRY_STATUS(read_core(fields, paths, recipe));
  WEFT_TRY(fsdp, fields.truth(kFsdp, false));
  if (recipe.zero > 1 && !fsdp) return user_error(fmt::format("{} needs {}", paths.sharding, kFsdp));
  WEFT_TRY(length, fields.count(kDatasetSequence, recipe.sequence));
  if (recipe.sequence != 0 && length != recipe.sequence)
    return user_error(fmt::format("{} and {} differ: {} and {}", paths.sequence, kDatasetSequence,
                                  recipe.sequence, length));
  recipe.sequence = length;
  WEFT_TRY(precision, fields.word(kPrecision, "null"));
  if (precision.find("nvfp4") != std::string::npos)
    recipe.precision = Precision::nvfp4;
  else if (precision.find("fp8") != std::string::npos)
    recipe.precision = Precision::fp8;
  else if (precision.starts_with("bf16"))
    recipe.precision = Precision::bf16;
  else if (precision.starts_with("fp16"))
    recipe.precision = Precision::f16;
  else if (precision != "null")
    return user_error(fmt::format("{}: expected bf16_mixed, fp16_mixed or one with fp8 or nvfp4, found '{}'",
                                  kPrecision, formats::shown(precision)));
  if (syntax_of(text) == Syntax::words)
    recipe.notes.push_back(
        "settings that are not given are taken as Megatron Core's defaults, not as the recipe's");
  std::vector<std::string_view> known = paths.all();
  known.insert(known.end(), {kPrecision, kDatasetSequence, kFsdp});
  WEFT_TRY_STATUS(fields.keep_rest(recipe, known));
  WEFT_TRY_STATUS(check(recipe));
  return recipe;
}

Settings settings_bridge(const Recipe& recipe) {
  Settings settings = core_settings(bridge_paths(), recipe);
  if (recipe.zero > 1) settings.push_back({std::string(kFsdp), "true"});
  settings.push_back({std::string(kPrecision), std::string(bridge_precision(recipe.precision))});
  return settings;
}

Written print_bridge(const Recipe& recipe) {
  Settings settings = settings_bridge(recipe);
  for (const auto& [path, value] : recipe.others)
    if (!path.starts_with("--") && find(settings, path) == nullptr) settings.push_back({path, value});
  return {print(Syntax::words, settings), core_lost(bridge_paths(), recipe)};
}

}  // namespace weft::recipe
