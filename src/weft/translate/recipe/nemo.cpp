// NeMo: overrides of a NeMo 2 recipe, such as trainer.strategy.tensor_model_parallel_size=8, or the YAML of
// NeMo 1, whose settings are in model. Both pass them to Megatron Core.
#include <algorithm>

#include <fmt/format.h>

#include "weft/translate/recipe/core_settings.h"
#include "weft/translate/recipe/languages.h"

namespace weft::recipe {
namespace {

constexpr std::string_view kNemo1 = "1";  // Recipe::dialect

CorePaths nemo_2_paths() {
  return {.tensor = "trainer.strategy.tensor_model_parallel_size",
          .pipeline = "trainer.strategy.pipeline_model_parallel_size",
          .virtual_stages = "trainer.strategy.virtual_pipeline_model_parallel_size",
          .context = "trainer.strategy.context_parallel_size",
          .expert = "trainer.strategy.expert_model_parallel_size",
          .expert_tensor = "trainer.strategy.expert_tensor_parallel_size",
          .sequence_parallel = "trainer.strategy.sequence_parallel",
          .pipeline_inside = "trainer.strategy.use_tp_pp_dp_mapping",
          .micro_batch = "data.micro_batch_size",
          .global_batch = "data.global_batch_size",
          .sequence = "data.seq_length",
          .granularity = "model.config.recompute_granularity",
          .method = "model.config.recompute_method",
          .recompute_layers = "model.config.recompute_num_layers",
          .zero_1 = "trainer.strategy.ddp.use_distributed_optimizer",
          .sharding = "trainer.strategy.ddp.data_parallel_sharding_strategy",
          .copies = "trainer.strategy.ddp.num_distributed_optimizer_instances",
          .overlap_reduce = "trainer.strategy.ddp.overlap_grad_reduce",
          .overlap_gather = "trainer.strategy.ddp.overlap_param_gather",
          .bucket = "trainer.strategy.ddp.bucket_size",
          .offload_optimizer = "optim.config.optimizer_cpu_offload",
          .layers = "model.config.num_layers",
          .hidden = "model.config.hidden_size",
          .inner = "model.config.ffn_hidden_size",
          .heads = "model.config.num_attention_heads",
          .key_heads = "model.config.num_query_groups",
          .experts = "model.config.num_moe_experts",
          .devices = "trainer.devices",
          .nodes = "trainer.num_nodes"};
}

CorePaths nemo_1_paths() {
  return {.tensor = "model.tensor_model_parallel_size",
          .pipeline = "model.pipeline_model_parallel_size",
          .virtual_stages = "model.virtual_pipeline_model_parallel_size",
          .context = "model.context_parallel_size",
          .expert = "model.expert_model_parallel_size",
          .expert_tensor = {},
          .sequence_parallel = "model.sequence_parallel",
          .pipeline_inside = "model.use_tp_pp_dp_mapping",
          .micro_batch = "model.micro_batch_size",
          .global_batch = "model.global_batch_size",
          .sequence = "model.encoder_seq_length",
          .granularity = "model.activations_checkpoint_granularity",
          .method = "model.activations_checkpoint_method",
          .recompute_layers = "model.activations_checkpoint_num_layers",
          .zero_1 = {},  // the optimizer's name
          .sharding = {},
          .copies = {},
          .overlap_reduce = "model.optim.overlap_grad_sync",
          .overlap_gather = "model.optim.overlap_param_sync",
          .bucket = {},
          .offload_optimizer = {},
          .layers = "model.num_layers",
          .hidden = "model.hidden_size",
          .inner = "model.ffn_hidden_size",
          .heads = "model.num_attention_heads",
          .key_heads = "model.num_query_groups",
          .experts = "model.num_moe_experts",
          .devices = "trainer.devices",
          .nodes = "trainer.num_nodes"};
}

constexpr std::string_view kOptimizer = "model.optim.name";
constexpr std::string_view kSharded[] = {"distributed_fused_adam", "mcore_distributed_optim"};
constexpr std::string_view kPrecisions[] = {"bf16",     "bf16-mixed", "bf16-true", "16",
                                            "16-mixed", "16-true",    "32",        "32-true"};

bool is_sharded(std::string_view optimizer) {
  return std::ranges::find(kSharded, optimizer) != std::end(kSharded);
}

// NeMo 1 has the degrees in model itself.
bool is_nemo_1(const Fields& fields) {
  const CorePaths old = nemo_1_paths();
  for (const std::string_view path :
       {old.tensor, old.pipeline, old.micro_batch, old.global_batch, old.sequence})
    if (fields.has(path)) return true;
  return false;
}

std::string_view nemo_precision(Precision precision, bool old) {
  switch (precision) {
    case Precision::f32: return "32";
    case Precision::f16: return "16-mixed";
    case Precision::bf16:
    case Precision::fp8:
    case Precision::nvfp4: break;
  }
  return old ? "bf16" : "bf16-mixed";
}

}  // namespace

Result<Recipe> read_nemo(std::string_view text) {
  WEFT_TRY(fields, Fields::read(text));
  Recipe recipe;
  const bool old = is_nemo_1(fields);
  const CorePaths paths = old ? nemo_1_paths() : nemo_2_paths();
  if (old) {
    recipe.dialect = kNemo1;
    for (const std::string_view path : nemo_2_paths().all())
      if (path.starts_with("trainer.strategy.") && fields.has(path))
        return user_error(fmt::format("{} is a setting of NeMo 2, {} one of NeMo 1", path,
                                      fields.has(paths.tensor) ? paths.tensor : paths.micro_batch),
                          "keep those of one version");
  }
  WEFT_TRY_STATUS(read_core(fields, paths, recipe));
  const std::string_view at = old ? "trainer.precision" : "trainer.plugins.precision";
  WEFT_TRY(precision, fields.word_of(at, old ? "32" : "bf16-mixed", kPrecisions));
  recipe.precision = precision.starts_with("bf16") ? Precision::bf16
                     : precision.starts_with("16") ? Precision::f16
                                                   : Precision::f32;
  bool eight_bits = false;
  if (old) {
    WEFT_TRY(is, fields.truth("model.fp8", false));
    eight_bits = is;
    WEFT_TRY(optimizer, fields.word(kOptimizer, ""));
    if (is_sharded(optimizer)) recipe.zero = 1;
    if (!optimizer.empty()) recipe.others.emplace_back(kOptimizer, optimizer);
  } else {
    WEFT_TRY(format, fields.word("trainer.plugins.fp8", ""));
    eight_bits = !format.empty();
  }
  if (eight_bits) recipe.precision = Precision::fp8;
  if (syntax_of(text) == Syntax::words)
    recipe.notes.push_back(
        "settings that are not given are taken as Megatron Core's defaults, not as the recipe's");
  const std::vector<std::string_view> known = paths.all();
  WEFT_TRY_STATUS(fields.keep_rest(recipe, known));
  WEFT_TRY_STATUS(check(recipe));
  return recipe;
}

Settings settings_nemo(const Recipe& recipe) {
  const bool old = recipe.dialect == kNemo1;
  Settings settings = core_settings(old ? nemo_1_paths() : nemo_2_paths(), recipe);
  settings.push_back({old ? "trainer.precision" : "trainer.plugins.precision",
                      std::string(nemo_precision(recipe.precision, old))});
  if (recipe.precision == Precision::fp8)
    settings.push_back(old ? Setting{"model.fp8", "true"} : Setting{"trainer.plugins.fp8", "hybrid"});
  if (old) {
    // The user's name of an optimizer with the same sharding stays.
    std::string optimizer = recipe.zero > 0 ? "mcore_distributed_optim" : "fused_adam";
    for (const auto& [path, value] : recipe.others)
      if (path == kOptimizer && is_sharded(value) == (recipe.zero > 0)) optimizer = value;
    settings.push_back({std::string(kOptimizer), optimizer});
  }
  return settings;
}

Written print_nemo(const Recipe& recipe) {
  Settings settings = settings_nemo(recipe);
  for (const auto& [path, value] : recipe.others)
    if (!path.starts_with("--") && find(settings, path) == nullptr) settings.push_back({path, value});
  const bool old = recipe.dialect == kNemo1;
  std::vector<std::string> lost = core_lost(old ? nemo_1_paths() : nemo_2_paths(), recipe);
  if (recipe.precision == Precision::nvfp4) lost.emplace_back("nvfp4");
  return {print(old ? Syntax::yaml : Syntax::words, settings), std::move(lost)};
}

}  // namespace weft::recipe
