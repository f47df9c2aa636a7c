#include "weft/translate/recipe/language.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/translate/recipe/fields.h"

namespace weft::recipe {
namespace {

// Older names, and names with other values, in users' texts.
constexpr OtherName kMegatronNames[] = {
    {"recompute-activations", "recompute-granularity", false},
    {"num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank", false},
    {"decoder-first-pipeline-num-layers", "pipeline-model-parallel-layout", false},
    {"decoder-last-pipeline-num-layers", "pipeline-model-parallel-layout", false},
    {"account-for-embedding-in-pipeline-split", "pipeline-model-parallel-layout", false},
    {"account-for-loss-in-pipeline-split", "pipeline-model-parallel-layout", false}};
constexpr OtherName kDeepspeedNames[] = {
    {"bfloat16.enabled", "bf16.enabled"},
    {"zero_optimization.cpu_offload", "zero_optimization.offload_optimizer.device", false}};
constexpr OtherName kTorchtitanNames[] = {
    {"training.batch_size", "training.local_batch_size"},
    {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
    {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
    {"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
    {"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
    {"experimental.context_parallel_degree", "parallelism.context_parallel_degree"}};

Settings settings_of(Language language, const Recipe& recipe) {
  switch (language) {
    case Language::megatron: return settings_megatron(recipe);
    case Language::deepspeed: return settings_deepspeed(recipe);
    case Language::torchtitan: return settings_torchtitan(recipe);
    case Language::nemo: return settings_nemo(recipe);
    case Language::bridge: return settings_bridge(recipe);
    case Language::accelerate: return settings_accelerate(recipe);
    case Language::maxtext: break;
  }
  return settings_maxtext(recipe);
}

Syntax syntax_in(Language language, std::string_view text) {
  switch (language) {
    case Language::megatron: return Syntax::flags;
    case Language::deepspeed: return Syntax::json;
    case Language::torchtitan: return Syntax::toml;
    case Language::nemo:
    case Language::bridge:
    case Language::accelerate:
    case Language::maxtext: break;
  }
  return syntax_of(text);
}

std::span<const OtherName> other_names(Language language) {
  switch (language) {
    case Language::megatron: return kMegatronNames;
    case Language::deepspeed: return kDeepspeedNames;
    case Language::torchtitan: return kTorchtitanNames;
    default: return {};
  }
}

}  // namespace

std::string_view name(Language language) {
  switch (language) {
    case Language::megatron: return "megatron";
    case Language::deepspeed: return "deepspeed";
    case Language::torchtitan: return "torchtitan";
    case Language::nemo: return "nemo";
    case Language::bridge: return "bridge";
    case Language::accelerate: return "accelerate";
    case Language::maxtext: break;
  }
  return "maxtext";
}

std::string_view stack_of(Language language) {
  switch (language) {
    case Language::megatron:
    case Language::nemo:
    case Language::bridge: return "megatron";
    case Language::deepspeed: return "deepspeed";
    case Language::torchtitan: return "torchtitan";
    case Language::accelerate: return "fsdp";
    case Language::maxtext: break;
  }
  return "maxtext";
}

std::string_view given_as(Language language) {
  switch (language) {
    case Language::megatron: return "'FLAGS'";
    case Language::deepspeed: return "ds_config.json";
    case Language::torchtitan: return "job.toml";
    case Language::nemo: return "megatron_gpt_config.yaml";
    case Language::bridge: return "'model.tensor_model_parallel_size=8 ..'";
    case Language::accelerate: return "default_config.yaml";
    case Language::maxtext: break;
  }
  return "base.yml";
}

Result<Recipe> read(Language language, std::string_view text, std::int64_t devices) {
  switch (language) {
    case Language::megatron: return read_megatron(text);
    case Language::deepspeed: return read_deepspeed(text, devices);
    case Language::torchtitan: return read_torchtitan(text, devices);
    case Language::nemo: return read_nemo(text);
    case Language::bridge: return read_bridge(text);
    case Language::accelerate: return read_accelerate(text);
    case Language::maxtext: break;
  }
  return read_maxtext(text, devices);
}

Written print(Language language, const Recipe& recipe) {
  switch (language) {
    case Language::megatron: return print_megatron(recipe);
    case Language::deepspeed: return print_deepspeed(recipe);
    case Language::torchtitan: return print_torchtitan(recipe);
    case Language::nemo: return print_nemo(recipe);
    case Language::bridge: return print_bridge(recipe);
    case Language::accelerate: return print_accelerate(recipe);
    case Language::maxtext: break;
  }
  return print_maxtext(recipe);
}

Rewritten rewrite(Language language, std::string_view text, const Recipe& as_read, const Recipe& better) {
  const Syntax syntax = syntax_in(language, text);
  Recipe today = as_read, next = better;
  today.devices = next.devices;
  today.default_batch = next.default_batch = 0;
  // What the text leaves to the launcher, it still does: the data degree and hosts.
  if (today.data == 0) next.data = 0;
  next.per_node = today.per_node;
  next.model = today.model;
  next.others = today.others;
  next.dialect = today.dialect;
  Rewritten made;
  made.before = edited(syntax, text, {}, {});
  made.after.lost = print(language, better).lost;
  made.after.text =
      edited(syntax, text, settings_of(language, today), settings_of(language, next), other_names(language));
  // A text that cannot be edited so is written anew: flow-style YAML, or a flag that depends on
  // another.
  const auto same = [&](const std::string& written) {
    Result<Recipe> again = read(language, written, next.devices);
    if (!again.ok()) return false;
    Recipe known = next;
    again->devices = known.devices;
    // The program states these, not the text.
    if (again->global_batch == 0) known.global_batch = 0;
    if (again->micro_batch == 0) known.micro_batch = 0;
    if (again->sequence == 0) known.sequence = 0;
    return same_plan(*again, known);
  };
  if (!same(made.after.text)) {
    Recipe whole = next;
    whole.model = better.model;
    made.after.text = print(language, whole).text;
  }
  return made;
}

std::string_view setting_about(Language language, std::string_view message, std::string_view text) {
  struct Words {
    std::string_view about, settings[kLanguages.size()];
  };
  // In the order of kLanguages. The first that the message mentions and the text contains.
  constexpr std::string_view kTensor = "tensor_model_parallel_size",
                             kPipeline = "pipeline_model_parallel_size",
                             kVirtual = "virtual_pipeline_model_parallel_size",
                             kContext = "context_parallel_size", kExpert = "expert_model_parallel_size",
                             kMicro = "micro_batch_size", kGlobal = "global_batch_size";
  constexpr Words kWords[] = {
      {"layers of", {"--num-layers", "", "", "num_layers", "num_layers", "", "base_num_decoder_layers"}},
      {"inner size of",
       {"--ffn-hidden-size", "", "", "ffn_hidden_size", "ffn_hidden_size", "", "base_mlp_dim"}},
      {"hidden size of", {"--hidden-size", "", "", "hidden_size", "hidden_size", "", "base_emb_dim"}},
      {"attention heads of",
       {"--num-attention-heads", "", "", "num_attention_heads", "num_attention_heads", "",
        "base_num_query_heads"}},
      {"key heads of",
       {"--num-query-groups", "", "", "num_query_groups", "num_query_groups", "", "base_num_kv_heads"}},
      {"experts of", {"--num-experts", "", "", "num_moe_experts", "num_moe_experts", "", "num_experts"}},
      {"expert",
       {"--expert-model-parallel-size", "", "expert_parallel_degree", kExpert, kExpert, "",
        "ici_expert_parallelism"}},
      {"virtual",
       {"--num-virtual-stages-per-pipeline-rank", "", "pipeline_parallel_schedule", kVirtual, kVirtual, "",
        "num_pipeline_repeats"}},
      {"virtual", {"--num-layers-per-virtual-pipeline-stage", "", "", "", "", "", ""}},
      {"tensor",
       {"--tensor-model-parallel-size", "autotp_size", "tensor_parallel_degree", kTensor, kTensor,
        "parallelism_config_tp_size", "ici_tensor_parallelism"}},
      {"pipeline",
       {"--pipeline-model-parallel-size", "", "pipeline_parallel_degree", kPipeline, kPipeline, "",
        "ici_pipeline_parallelism"}},
      {"context",
       {"--context-parallel-size", "sequence_parallel_size", "context_parallel_degree", kContext, kContext,
        "parallelism_config_cp_size", "ici_context_parallelism"}},
      {"data",
       {"--micro-batch-size", "train_micro_batch_size_per_gpu", "data_parallel_shard_degree", kMicro, kMicro,
        "num_processes", "ici_fsdp_parallelism"}},
      {"batch",
       {"--global-batch-size", "train_batch_size", "global_batch_size", kGlobal, kGlobal, "",
        "per_device_batch_size"}},
      {"devices", {"--world-size", "", "", "devices", "", "num_processes", "ici_fsdp_parallelism"}},
      {"devices", {"--nnodes", "", "", "num_nodes", "", "num_machines", "ici_data_parallelism"}},
      {"devices", {"--nproc-per-node", "", "", "", "", "", ""}},
      {"devices", {"--nproc_per_node", "", "", "", "", "", ""}},
  };
  for (const Words& words : kWords) {
    const std::string_view setting = words.settings[static_cast<std::size_t>(language)];
    if (!setting.empty() && message.find(words.about) != std::string_view::npos &&
        text.find(setting) != std::string_view::npos)
      return setting;
  }
  return {};
}

}  // namespace weft::recipe
