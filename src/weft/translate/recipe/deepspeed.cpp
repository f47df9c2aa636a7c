// DeepSpeed's ds_config.json: batches, ZeRO, precision. The program, not the file, sets other
// degrees than data.
#include <algorithm>

#include <fmt/format.h>

#include "weft/formats/json_node.h"
#include "weft/formats/value.h"
#include "weft/translate/recipe/fields.h"
#include "weft/translate/recipe/languages.h"

namespace weft::recipe {
namespace {

using formats::Json;
using formats::JsonNode;

constexpr std::string_view kRead[] = {"train_batch_size",
                                      "train_micro_batch_size_per_gpu",
                                      "gradient_accumulation_steps",
                                      "zero_optimization",
                                      "fp16",
                                      "bf16",
                                      "bfloat16",
                                      "activation_checkpointing",
                                      "tensor_parallel",
                                      "sequence_parallel_size"};
constexpr std::string_view kKept[] = {"optimizer",
                                      "scheduler",
                                      "gradient_clipping",
                                      "steps_per_print",
                                      "wall_clock_breakdown",
                                      "prescale_gradients",
                                      "gradient_predivide_factor",
                                      "communication_data_type",
                                      "sparse_gradients",
                                      "amp",
                                      "zero_allow_untested_optimizer",
                                      "zero_force_ds_cpu_optimizer",
                                      "dump_state",
                                      "flops_profiler",
                                      "tensorboard",
                                      "wandb",
                                      "csv_monitor",
                                      "comms_logger",
                                      "monitor_config",
                                      "data_efficiency",
                                      "aio",
                                      "checkpoint",
                                      "data_types",
                                      "autotuning",
                                      "elasticity",
                                      "compression_training",
                                      "hybrid_engine",
                                      "pipeline",
                                      "seed"};

// With "auto" the Hugging Face trainer supplies its arguments; these are their defaults.
constexpr std::int64_t kTrainerBatch = 8;  // --per_device_train_batch_size

bool is_auto(const Json& json, const char* key) { return json.contains(key) && json[key] == "auto"; }

// An integer of at least 1; 0 if it is absent or "auto".
Result<std::int64_t> count_at(const JsonNode& node, const Json& json, const char* key) {
  if (!node.has(key) || json[key] == "auto") return std::int64_t{0};
  WEFT_TRY(count, node.whole(key, 1, 2147483647));
  return std::int64_t{count};
}

Result<bool> enabled(const JsonNode& top, const Json& json, const char* key, Recipe& recipe) {
  if (!top.has(key)) return false;
  WEFT_TRY(node, top.at(key));
  WEFT_TRY_STATUS(node.expect_object());
  if (json[key].contains("enabled") && json[key]["enabled"] == "auto") {
    recipe.notes.push_back(
        fmt::format("{}.enabled auto: the trainer's --{}, off by default; write true if the program sets it",
                    key, std::string_view(key) == "fp16" ? "fp16" : "bf16"));
    return false;
  }
  return node.truth("enabled", true);
}

Result<bool> offloads(const JsonNode& zero, const Json& json, const char* key) {
  if (!zero.has(key) || json[key].is_null()) return false;
  WEFT_TRY(node, zero.at(key));
  WEFT_TRY_STATUS(node.expect_object());
  if (!node.has("device")) return false;
  WEFT_TRY(device, node.text("device"));
  if (device == "none") return false;
  if (device == "cpu" || device == "nvme") return true;
  return node.error(fmt::format("expected device cpu, nvme or none, found '{}'", formats::shown(device)));
}

// Elements per bucket; the file may write 5e8.
Result<std::int64_t> bucket_at(const JsonNode& zero, const Json& json, const char* key) {
  if (!zero.has(key) || json[key] == "auto") return std::int64_t{0};
  WEFT_TRY(number, zero.number(key, 0));
  if (!(number >= 1 && number <= 1e15))
    return zero.error(fmt::format("{}: expected 1 to 1e15, found {}", key, number));
  return static_cast<std::int64_t>(number);
}

Status read_zero(const JsonNode& top, const Json& json, Recipe& recipe) {
  if (!top.has("zero_optimization")) return {};
  WEFT_TRY(zero, top.at("zero_optimization"));
  WEFT_TRY_STATUS(zero.expect_object());
  const Json& own = json["zero_optimization"];
  if (is_auto(own, "stage"))
    return zero.error("stage: expected 0 to 3, found 'auto'", "the trainer does not fill it in");
  if (zero.has("stage")) {
    WEFT_TRY(stage, zero.whole("stage", 0, 3));
    recipe.zero = stage;
  }
  WEFT_TRY(overlap, zero.truth("overlap_comm", recipe.zero == 3));
  recipe.overlap_reduce = overlap;
  recipe.overlap_gather = overlap && recipe.zero == 3;
  WEFT_TRY(bucket, bucket_at(zero, own, "reduce_bucket_size"));
  recipe.bucket = bucket;
  WEFT_TRY(optimizer, offloads(zero, own, "offload_optimizer"));
  WEFT_TRY(parameters, offloads(zero, own, "offload_param"));
  WEFT_TRY(older, zero.truth("cpu_offload", false));  // the name before version 0.3.16
  optimizer = optimizer || older;
  recipe.offload_optimizer = optimizer;
  recipe.offload_parameters = parameters;
  if (optimizer && recipe.zero == 0) return zero.error("offload_optimizer needs stage 1 to 3");
  for (const char* key : {"mics_shard_size", "zero_hpz_partition_size"})
    if (zero.has(key)) {
      WEFT_TRY(size, zero.number(key, 1));
      if (size > 1) recipe.notes.push_back(fmt::format("zero_optimization.{} is kept unchanged", key));
    }
  return {};
}

Status read_batches(const JsonNode& top, const Json& json, std::int64_t devices, Recipe& recipe) {
  WEFT_TRY(global, count_at(top, json, "train_batch_size"));
  WEFT_TRY(micro, count_at(top, json, "train_micro_batch_size_per_gpu"));
  WEFT_TRY(passes, count_at(top, json, "gradient_accumulation_steps"));
  recipe.devices = devices;
  // The trainer fills in its batch per device and its number of accumulation steps, 1.
  if (micro == 0 && global == 0 && is_auto(json, "train_micro_batch_size_per_gpu")) {
    micro = kTrainerBatch;
    recipe.notes.push_back(
        fmt::format("train_micro_batch_size_per_gpu auto: the trainer's --per_device_train_batch_size, {} by "
                    "default",
                    kTrainerBatch));
  }
  if (passes == 0 && is_auto(json, "gradient_accumulation_steps") && (global == 0 || micro == 0)) {
    passes = 1;
    recipe.notes.push_back(
        "gradient_accumulation_steps auto: the trainer's --gradient_accumulation_steps, 1 by default");
  }
  std::int64_t data = recipe.data_degree();
  if (data == 0 && global > 0 && micro > 0 && passes > 0) {
    if (global % micro != 0 || global / micro % passes != 0)
      return user_error(
          fmt::format("train_batch_size is not a multiple of micro-batch x accumulation: {} and {} x {}",
                      global, micro, passes));
    data = global / micro / passes;
    recipe.data = data;
  }
  if (data > 0) {
    if (global == 0 && micro > 0) global = micro * std::max<std::int64_t>(passes, 1) * data;
    if (micro == 0 && global > 0) {
      const std::int64_t each = std::max<std::int64_t>(passes, 1) * data;
      if (global % each != 0)
        return user_error(
            fmt::format("train_batch_size is not a multiple of accumulation x data: {} and {} x {}", global,
                        std::max<std::int64_t>(passes, 1), data));
      micro = global / each;
    }
    if (global > 0 && micro > 0 && passes > 0 && global != micro * passes * data)
      return user_error(
          fmt::format("train_batch_size is not micro-batch x accumulation x data: {} and {} x {} x {}",
                      global, micro, passes, data));
  }
  recipe.micro_batch = micro;
  recipe.global_batch = global;
  return {};
}

// Keeps what the plan does not state, with its numbers as written.
void keep_as_written(std::string_view text, Recipe& recipe) {
  constexpr std::string_view kStated[] = {"fp16.enabled", "bf16.enabled", "bfloat16.enabled",
                                          "zero_optimization.cpu_offload"};
  const Settings stated = settings_deepspeed(recipe);
  for (const Setting& setting : settings_in(Syntax::json, text))
    if (setting.text != "\"auto\"" && find(stated, setting.path) == nullptr &&
        std::ranges::find(kStated, setting.path) == std::end(kStated))
      recipe.others.emplace_back(setting.path, setting.text);
}

}  // namespace

Result<Recipe> read_deepspeed(std::string_view text, std::int64_t devices) {
  WEFT_TRY(json, formats::parse_json(text));
  const JsonNode top(json);
  WEFT_TRY_STATUS(top.expect_object());
  Recipe recipe;
  std::vector<std::string_view> known(std::begin(kRead), std::end(kRead));
  known.insert(known.end(), std::begin(kKept), std::end(kKept));
  std::vector<std::string> names;
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(kRead, key) != std::end(kRead)) continue;
    if (std::ranges::find(kKept, key) == std::end(kKept)) {
      if (const std::string hint = misspelling_hint(key, known); !hint.empty())
        return user_error(fmt::format("unknown key: {}", formats::shown(key)), hint);
      recipe.notes.push_back(fmt::format("unknown, passed through: {}", formats::shown(key)));
    } else {
      names.push_back(key);
    }
  }
  note_kept(recipe, names);
  WEFT_TRY_STATUS(read_zero(top, json, recipe));
  if (top.has("tensor_parallel")) {
    WEFT_TRY(tensor, top.at("tensor_parallel"));
    WEFT_TRY_STATUS(tensor.expect_object());
    if (tensor.has("autotp_size")) {
      WEFT_TRY(degree, tensor.whole("autotp_size", 0, 1 << 20));
      recipe.tensor = std::max(degree, 1);
    }
  }
  WEFT_TRY(slices, count_at(top, json, "sequence_parallel_size"));
  if (slices > 1) recipe.context = slices;
  WEFT_TRY_STATUS(read_batches(top, json, devices, recipe));
  WEFT_TRY(half, enabled(top, json, "fp16", recipe));
  WEFT_TRY(brain, enabled(top, json, "bf16", recipe));
  WEFT_TRY(older, enabled(top, json, "bfloat16", recipe));
  if (half && (brain || older)) return user_error("fp16 and bf16 are mutually exclusive: both are enabled");
  if (half) recipe.precision = Precision::f16;
  if (brain || older) recipe.precision = Precision::bf16;
  if (top.has("activation_checkpointing")) {
    WEFT_TRY(node, top.at("activation_checkpointing"));
    WEFT_TRY_STATUS(node.expect_object());
    // The section configures checkpoints that the program makes of its layers; their number only
    // sizes buffers.
    recipe.recompute = Recompute::full;
    recipe.notes.emplace_back(
        "activation_checkpointing has an effect only if the model calls deepspeed.checkpointing.checkpoint; "
        "estimated as called for each layer");
    WEFT_TRY(on_host, node.truth("cpu_checkpointing", false));
    if (on_host)
      recipe.notes.push_back("activations in host memory are not estimated: activation_checkpointing");
  }
  keep_as_written(text, recipe);
  WEFT_TRY_STATUS(check(recipe, devices));
  return recipe;
}

Settings settings_deepspeed(const Recipe& recipe) {
  Settings settings;
  const auto put = [&](std::string_view path, std::string value) {
    settings.push_back({std::string(path), std::move(value)});
  };
  if (recipe.global_batch > 0) put("train_batch_size", std::to_string(recipe.global_batch));
  if (recipe.micro_batch > 0) put("train_micro_batch_size_per_gpu", std::to_string(recipe.micro_batch));
  if (const std::int64_t passes = recipe.micro_batches(); passes > 0)
    put("gradient_accumulation_steps", std::to_string(passes));
  put("zero_optimization.stage", std::to_string(recipe.zero));
  put("zero_optimization.overlap_comm", truth_text(recipe.overlap_reduce));
  if (recipe.bucket > 0) put("zero_optimization.reduce_bucket_size", std::to_string(recipe.bucket));
  if (recipe.offload_optimizer) put("zero_optimization.offload_optimizer.device", "\"cpu\"");
  if (recipe.offload_parameters) put("zero_optimization.offload_param.device", "\"cpu\"");
  if (recipe.precision == Precision::f16) put("fp16.enabled", "true");
  if (recipe.precision == Precision::bf16 || is_narrow(recipe.precision)) put("bf16.enabled", "true");
  if (recipe.recompute == Recompute::full) put("activation_checkpointing.partition_activations", "false");
  if (recipe.tensor > 1) put("tensor_parallel.autotp_size", std::to_string(recipe.tensor));
  if (recipe.context > 1) put("sequence_parallel_size", std::to_string(recipe.context));
  return settings;
}

Written print_deepspeed(const Recipe& recipe) {
  Written written;
  Settings settings = settings_deepspeed(recipe);
  for (const auto& [key, value] : recipe.others)
    // Not from another launcher, and not written yet.
    if (!key.starts_with("--") && find(settings, key) == nullptr) settings.push_back({key, value});
  written.text = print(Syntax::json, settings);
  const auto lose = [&](bool is, std::string what) {
    if (is) written.lost.push_back(std::move(what));
  };
  lose(recipe.pipeline > 1, fmt::format("pipeline {}: set by the program's PipelineModule", recipe.pipeline));
  lose(recipe.pipeline > 1 && recipe.zero > 1,
       fmt::format("ZeRO {} with a pipeline: at most 1", recipe.zero));
  lose(recipe.virtual_stages > 1, fmt::format("virtual stages {}", recipe.virtual_stages));
  lose(recipe.expert > 1, fmt::format("expert {}: set by the program's MoE layers", recipe.expert));
  lose(recipe.sequence_parallel, "sequence parallel");
  lose(recipe.recompute == Recompute::selective, "selective recomputation");
  lose(recipe.recompute == Recompute::full,
       "full recomputation: the model must call deepspeed.checkpointing.checkpoint for each layer");
  lose(!recipe.schedule.empty(), fmt::format("schedule {}", recipe.schedule));
  lose(recipe.recompute_layers > 0,
       fmt::format("recomputation of {} layers per stage: set by the program", recipe.recompute_layers));
  lose(recipe.precision == Precision::fp8, "fp8");
  lose(recipe.precision == Precision::nvfp4, "nvfp4");
  lose(recipe.copies > 1, fmt::format("sharding within {} replicas", recipe.copies));
  lose(recipe.sequence > 0, fmt::format("sequence length {}: set by the program", recipe.sequence));
  lose(recipe.order != kUsualOrder, fmt::format("rank order {}", recipe.order));
  return written;
}

}  // namespace weft::recipe
