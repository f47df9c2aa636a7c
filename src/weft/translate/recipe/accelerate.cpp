// Hugging Face Accelerate's configuration with FSDP or DDP: YAML as `accelerate config` writes it. The
// program, not the file, sets batches and sequences.
#include <algorithm>

#include <fmt/format.h>

#include "weft/formats/value.h"
#include "weft/translate/recipe/fields.h"
#include "weft/translate/recipe/languages.h"

namespace weft::recipe {
namespace {

constexpr std::string_view kDistributedType = "distributed_type", kVersion = "fsdp_config.fsdp_version",
                           kStrategy = "fsdp_config.fsdp_sharding_strategy",
                           kReshard = "fsdp_config.fsdp_reshard_after_forward",
                           kOffload = "fsdp_config.fsdp_offload_params",
                           kRecompute = "fsdp_config.fsdp_activation_checkpointing",
                           kPrefetch = "fsdp_config.fsdp_backward_prefetch", kMixed = "mixed_precision",
                           kProcesses = "num_processes", kMachines = "num_machines",
                           kAccumulation = "gradient_accumulation_steps",
                           kMesh = "parallelism_config.parallelism_config_";
constexpr std::string_view kVersion1 = "1";  // Recipe::dialect

std::string on_mesh(std::string_view what) { return fmt::format("{}{}_size", kMesh, what); }

// Version 1 names strategies by word or number: full, gradients and optimizer, none, and the first
// two within a machine.
struct Strategy {
  std::string_view word, number;
  int zero;
  bool within_machines;
};
constexpr Strategy kStrategiesOfFsdp[] = {{"FULL_SHARD", "1", 3, false},
                                          {"SHARD_GRAD_OP", "2", 2, false},
                                          {"NO_SHARD", "3", 0, false},
                                          {"HYBRID_SHARD", "4", 3, true},
                                          {"HYBRID_SHARD_ZERO2", "5", 2, true}};

Status read_fsdp(Fields& fields, std::int64_t machines, Recipe& recipe) {
  WEFT_TRY(version, fields.count(kVersion, 1));
  if (version > 2)
    return user_error(fmt::format("{}: expected 1 or 2, found {}", kVersion, version),
                      "configurations of later versions are not known");
  if (version == 2) {
    if (fields.has(kStrategy))
      return user_error(
          fmt::format("{} is a setting of FSDP version 1, found with fsdp_version 2", kStrategy),
          "fsdp_reshard_after_forward: true");
    WEFT_TRY(reshard, fields.truth(kReshard, true));
    recipe.zero = reshard ? 3 : 2;
    return {};
  }
  recipe.dialect = kVersion1;
  const std::string_view at = fields.has(kStrategy) || !fields.has(kReshard) ? kStrategy : kReshard;
  WEFT_TRY(word, fields.word(at, "FULL_SHARD"));
  const auto found = std::ranges::find_if(kStrategiesOfFsdp, [&](const Strategy& strategy) {
    return strategy.word == word || strategy.number == word;
  });
  if (found == std::end(kStrategiesOfFsdp))
    return user_error(
        fmt::format("{}: expected FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD or "
                    "HYBRID_SHARD_ZERO2, found '{}'",
                    at, formats::shown(word)));
  recipe.zero = found->zero;
  if (found->within_machines) recipe.copies = machines;
  return {};
}

Status read_mesh(Fields& fields, Recipe& recipe) {
  WEFT_TRY(tensor, fields.count(on_mesh("tp"), 1));
  WEFT_TRY(context, fields.count(on_mesh("cp"), 1));
  WEFT_TRY(copies, fields.count(on_mesh("dp_replicate"), 1));
  WEFT_TRY(shards, fields.count(on_mesh("dp_shard"), 0));
  recipe.tensor = tensor;
  recipe.context = context;
  if (copies > 1 && recipe.zero > 0) recipe.copies = copies;
  if (shards > 0 && __builtin_mul_overflow(copies, shards, &recipe.data))
    return user_error("data parallel degrees are too large");
  if (tensor > 1 && recipe.dialect == kVersion1)
    return user_error(fmt::format("{} needs {} 2", on_mesh("tp"), kVersion));
  return {};
}

}  // namespace

Result<Recipe> read_accelerate(std::string_view text) {
  WEFT_TRY(fields, Fields::read(text));
  Recipe recipe;
  WEFT_TRY(type, fields.word(kDistributedType, "NO"));
  if (type == "DEEPSPEED" || type == "MEGATRON_LM")
    return user_error(fmt::format("{}: expected FSDP, MULTI_GPU or NO, found {}", kDistributedType, type),
                      type == "DEEPSPEED" ? "give its deepspeed_config_file: --deepspeed ds_config.json"
                                          : "give its flags: --megatron 'FLAGS'");
  if (type != "FSDP" && type != "MULTI_GPU" && type != "NO")
    return user_error(fmt::format("{}: expected FSDP, MULTI_GPU or NO, found '{}'", kDistributedType,
                                  formats::shown(type)));
  WEFT_TRY(machines, fields.count(kMachines, 1));
  WEFT_TRY(processes, fields.count(kProcesses, 0));
  recipe.devices = processes;
  if (processes > 0) {
    if (processes % machines != 0)
      return user_error(
          fmt::format("{} does not divide {}: {} and {}", kMachines, kProcesses, machines, processes));
    recipe.per_node = processes / machines;
  }
  if (type == "FSDP") WEFT_TRY_STATUS(read_fsdp(fields, machines, recipe));
  WEFT_TRY_STATUS(read_mesh(fields, recipe));
  WEFT_TRY(offloads, fields.truth(kOffload, false));
  if (offloads && recipe.zero == 0) return user_error(fmt::format("{} needs sharded parameters", kOffload));
  recipe.offload_optimizer = offloads;
  recipe.offload_parameters = offloads && recipe.zero == 3;
  WEFT_TRY(repeats, fields.truth(kRecompute, false));
  recipe.recompute = repeats ? Recompute::full : Recompute::none;
  constexpr std::string_view kPrecisions[] = {"no", "fp16", "bf16", "fp8"};
  WEFT_TRY(mixed, fields.word_of(kMixed, "no", kPrecisions));
  recipe.precision = static_cast<Precision>(std::ranges::find(kPrecisions, mixed) - std::begin(kPrecisions));
  recipe.overlap_reduce = true;  // FSDP and DDP reduce gradients during the backward pass
  recipe.overlap_gather = recipe.zero > 0;
  WEFT_TRY(passes, fields.count(kAccumulation, 1));
  if (passes > 1) recipe.others.emplace_back(kAccumulation, std::to_string(passes));
  constexpr std::string_view kKnown[] = {kDistributedType, kVersion,   kStrategy,    kReshard,
                                         kOffload,         kRecompute, kPrefetch,    kMixed,
                                         kProcesses,       kMachines,  kAccumulation};
  WEFT_TRY_STATUS(fields.keep_rest(recipe, kKnown));
  WEFT_TRY_STATUS(check(recipe));
  return recipe;
}

Settings settings_accelerate(const Recipe& recipe) {
  Settings settings;
  const auto put = [&](std::string_view path, std::string value) {
    settings.push_back({std::string(path), std::move(value)});
  };
  const std::int64_t data = std::max<std::int64_t>(recipe.data_degree(), 1);
  const bool fsdp = recipe.zero > 0;
  // ZeRO 1 is not offered; the nearest shards gradients too.
  const bool reshards = recipe.zero == 3;
  put(kDistributedType, fsdp ? "FSDP" : "MULTI_GPU");
  const bool first = recipe.dialect == kVersion1 && recipe.tensor == 1;
  const bool on_machines =
      recipe.per_node > 0 && recipe.copies > 1 && recipe.devices / recipe.per_node == recipe.copies;
  if (fsdp) {
    put(kVersion, first ? "1" : "2");
    if (first && on_machines)
      put(kStrategy, reshards ? "HYBRID_SHARD" : "HYBRID_SHARD_ZERO2");
    else if (first)
      put(kStrategy, reshards ? "FULL_SHARD" : "SHARD_GRAD_OP");
    else
      put(kReshard, truth_text(reshards));
    put(kOffload, truth_text(recipe.offload_parameters || (recipe.offload_optimizer && recipe.zero == 2)));
    put(kRecompute, truth_text(recipe.recompute == Recompute::full));
  }
  put(kMixed, recipe.precision == Precision::f32   ? "'no'"
              : recipe.precision == Precision::f16 ? "fp16"
                                                   : std::string(name(recipe.precision)));
  if (recipe.devices > 0) {
    const std::int64_t usual = recipe.devices % 8 == 0 ? 8 : recipe.devices;
    const std::int64_t ranks = recipe.per_node > 0 ? recipe.per_node : usual;
    put(kMachines, std::to_string(recipe.devices / ranks));
    put(kProcesses, std::to_string(recipe.devices));
  }
  const bool hybrid = fsdp && recipe.copies > 1 && !(first && on_machines);
  if (recipe.tensor > 1 || recipe.context > 1 || hybrid) {
    put(on_mesh("dp_replicate"), std::to_string(fsdp ? recipe.copies : data));
    put(on_mesh("dp_shard"), std::to_string(fsdp ? data / recipe.copies : 1));
    put(on_mesh("tp"), std::to_string(recipe.tensor));
    put(on_mesh("cp"), std::to_string(recipe.context));
  }
  return settings;
}

Written print_accelerate(const Recipe& recipe) {
  Settings settings = settings_accelerate(recipe);
  for (const auto& [path, value] : recipe.others)
    if (!path.starts_with("--") && find(settings, path) == nullptr) settings.push_back({path, value});
  Written written{print(Syntax::yaml, settings), {}};
  const auto lose = [&](bool is, std::string what) {
    if (is) written.lost.push_back(std::move(what));
  };
  lose(recipe.pipeline > 1, fmt::format("pipeline {}", recipe.pipeline));
  lose(recipe.expert > 1, fmt::format("expert {}", recipe.expert));
  lose(recipe.sequence_parallel, "sequence parallel");
  lose(recipe.zero == 1, "ZeRO 1: gradients are sharded too");
  lose(recipe.recompute == Recompute::selective, "selective recomputation");
  lose(recipe.recompute == Recompute::full && recipe.zero == 0, "recomputation without FSDP");
  lose(recipe.offload_optimizer && recipe.zero != 2 && !recipe.offload_parameters,
       "optimizer states in host memory");
  lose(recipe.bucket > 0, fmt::format("bucket size {}", recipe.bucket));
  lose(recipe.order != kUsualOrder, fmt::format("rank order {}", recipe.order));
  lose(recipe.micro_batch > 0, fmt::format("micro-batch {} x {}: set by the program", recipe.micro_batch,
                                           std::max<std::int64_t>(recipe.micro_batches(), 1)));
  return written;
}

}  // namespace weft::recipe
