#include "weft/translate/recipe/core_settings.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::recipe {
namespace {

constexpr std::string_view kStrategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};

Status read_core_recomputation(Fields& fields, const CorePaths& paths, Recipe& recipe) {
  constexpr std::string_view kGranularities[] = {"none", "selective", "full"};
  constexpr std::string_view kMethods[] = {"none", "uniform", "block"};
  WEFT_TRY(granularity, fields.word_of(paths.granularity, "none", kGranularities));
  WEFT_TRY(method, fields.word_of(paths.method, "none", kMethods));
  WEFT_TRY(layers, fields.count(paths.recompute_layers, 0));
  if (granularity == "full" && method == "none")
    return user_error(fmt::format("{}: full needs {}", paths.granularity, paths.method), "uniform or block");
  if (granularity != "full" && method != "none")
    return user_error(fmt::format("{}: {} needs {} full", paths.method, method, paths.granularity));
  recipe.recompute = granularity == "none"        ? Recompute::none
                     : granularity == "selective" ? Recompute::selective
                                                  : Recompute::full;
  if (method == "block") recipe.recompute_layers = layers;
  return {};
}

}  // namespace

std::vector<std::string_view> CorePaths::all() const {
  std::vector<std::string_view> paths = {tensor,
                                         pipeline,
                                         virtual_stages,
                                         context,
                                         expert,
                                         expert_tensor,
                                         micro_batch,
                                         global_batch,
                                         sequence,
                                         granularity,
                                         method,
                                         recompute_layers,
                                         zero_1,
                                         sharding,
                                         copies,
                                         overlap_reduce,
                                         bucket,
                                         overlap_gather,
                                         layers,
                                         hidden,
                                         inner,
                                         heads,
                                         experts,
                                         key_heads,
                                         devices,
                                         pipeline_inside,
                                         nodes,
                                         offload_optimizer,
                                         sequence_parallel};
  std::erase(paths, std::string_view());
  return paths;
}

Status check_key_heads(const Recipe& recipe, std::string_view tensor, std::string_view key_heads) {
  const std::int64_t heads = recipe.model.key_heads;
  if (heads == 0 || heads % recipe.tensor == 0) return {};
  std::int64_t nearest = std::min(recipe.tensor, heads);
  while (heads % nearest != 0) --nearest;
  return user_error(fmt::format("{} does not divide {}: {} and {}", tensor, key_heads, recipe.tensor, heads),
                    fmt::format("the nearest degree that does is {}", nearest));
}

Status read_core(Fields& fields, const CorePaths& paths, Recipe& recipe) {
  const std::pair<std::string_view, std::int64_t*> counts[] = {{paths.tensor, &recipe.tensor},
                                                               {paths.pipeline, &recipe.pipeline},
                                                               {paths.virtual_stages, &recipe.virtual_stages},
                                                               {paths.context, &recipe.context},
                                                               {paths.expert, &recipe.expert},
                                                               {paths.expert_tensor, &recipe.expert_tensor},
                                                               {paths.micro_batch, &recipe.micro_batch},
                                                               {paths.global_batch, &recipe.global_batch},
                                                               {paths.sequence, &recipe.sequence},
                                                               {paths.copies, &recipe.copies},
                                                               {paths.bucket, &recipe.bucket},
                                                               {paths.layers, &recipe.model.layers},
                                                               {paths.hidden, &recipe.model.hidden},
                                                               {paths.inner, &recipe.model.inner},
                                                               {paths.heads, &recipe.model.heads},
                                                               {paths.key_heads, &recipe.model.key_heads},
                                                               {paths.experts, &recipe.model.experts}};
  for (const auto& [path, field] : counts) {
    if (path.empty()) continue;
    WEFT_TRY(count, fields.count(path, *field));
    *field = count;
  }
  const std::pair<std::string_view, bool*> truths[] = {{paths.sequence_parallel, &recipe.sequence_parallel},
                                                       {paths.overlap_reduce, &recipe.overlap_reduce},
                                                       {paths.overlap_gather, &recipe.overlap_gather},
                                                       {paths.offload_optimizer, &recipe.offload_optimizer}};
  for (const auto& [path, field] : truths) {
    if (path.empty()) continue;
    WEFT_TRY(truth, fields.truth(path, *field));
    *field = truth;
  }
  if (recipe.sequence_parallel && recipe.tensor == 1) {
    recipe.sequence_parallel = false;
    recipe.notes.push_back(fmt::format("{} has no effect if {} is 1", paths.sequence_parallel, paths.tensor));
  }
  if (!paths.pipeline_inside.empty()) {
    WEFT_TRY(inside, fields.truth(paths.pipeline_inside, false));
    if (inside) recipe.order = kPipelineInside;
  }
  if (!paths.zero_1.empty()) {
    WEFT_TRY(distributed, fields.truth(paths.zero_1, false));
    recipe.zero = distributed ? 1 : 0;
  }
  if (!paths.sharding.empty()) {
    WEFT_TRY(strategy, fields.word_of(paths.sharding, "no_shard", kStrategies));
    const auto found = std::ranges::find(kStrategies, strategy) - std::begin(kStrategies);
    if (found > 0) recipe.zero = static_cast<int>(found);
  }
  if (recipe.copies > 1 && recipe.zero == 0)
    return user_error(fmt::format("{} needs {}", paths.copies, paths.zero_1));
  if (!paths.devices.empty()) {
    WEFT_TRY(devices, fields.count(paths.devices, 0));
    WEFT_TRY(nodes, fields.count(paths.nodes, 1));
    if (devices > 0 && __builtin_mul_overflow(devices, nodes, &recipe.devices))
      return user_error(fmt::format("{} x {} is too large", paths.devices, paths.nodes));
    recipe.per_node = devices;
  }
  WEFT_TRY_STATUS(read_core_recomputation(fields, paths, recipe));
  return check_key_heads(recipe, paths.tensor, paths.key_heads);
}

Settings core_settings(const CorePaths& paths, const Recipe& recipe) {
  Settings settings;
  const auto count = [&](std::string_view path, std::int64_t value, std::int64_t usual = 0) {
    if (!path.empty() && value != usual) settings.push_back({std::string(path), std::to_string(value)});
  };
  const auto truth = [&](std::string_view path, bool is) {
    if (!path.empty()) settings.push_back({std::string(path), truth_text(is)});
  };
  if (recipe.devices > 0 && !paths.devices.empty()) {
    const std::int64_t usual = recipe.devices % 8 == 0 ? 8 : recipe.devices;
    const std::int64_t ranks = recipe.per_node > 0 ? recipe.per_node : usual;
    count(paths.devices, ranks);
    count(paths.nodes, recipe.devices / std::max<std::int64_t>(ranks, 1));
  }
  count(paths.tensor, recipe.tensor);
  truth(paths.sequence_parallel, recipe.sequence_parallel && recipe.tensor > 1);
  count(paths.pipeline, recipe.pipeline);
  count(paths.virtual_stages, recipe.virtual_stages, 1);
  count(paths.context, recipe.context);
  count(paths.expert, recipe.expert, recipe.model.experts > 0 ? 0 : 1);
  count(paths.expert_tensor, recipe.expert_tensor);
  if (recipe.order == kPipelineInside) truth(paths.pipeline_inside, true);
  count(paths.micro_batch, recipe.micro_batch);
  count(paths.global_batch, recipe.global_batch);
  count(paths.sequence, recipe.sequence);
  if (recipe.recompute != Recompute::none)
    settings.push_back({std::string(paths.granularity), std::string(name(recipe.recompute))});
  if (recipe.recompute == Recompute::full) {
    const bool some = recipe.recompute_layers > 0;
    settings.push_back({std::string(paths.method), some ? "block" : "uniform"});
    settings.push_back(
        {std::string(paths.recompute_layers), std::to_string(some ? recipe.recompute_layers : 1)});
  }
  truth(paths.zero_1, recipe.zero > 0);
  if (recipe.zero > 1 && !paths.sharding.empty())
    settings.push_back({std::string(paths.sharding), std::string(kStrategies[recipe.zero])});
  if (recipe.zero > 0) count(paths.copies, recipe.copies, 1);
  truth(paths.overlap_reduce, recipe.overlap_reduce || (recipe.overlap_gather && recipe.zero > 0));
  truth(paths.overlap_gather, recipe.overlap_gather && recipe.zero > 0);
  count(paths.bucket, recipe.bucket);
  if (recipe.offload_optimizer) truth(paths.offload_optimizer, true);
  count(paths.layers, recipe.model.layers);
  count(paths.hidden, recipe.model.hidden);
  count(paths.inner, recipe.model.inner);
  count(paths.heads, recipe.model.heads);
  count(paths.key_heads, recipe.model.key_heads);
  count(paths.experts, recipe.model.experts);
  return settings;
}

std::vector<std::string> core_lost(const CorePaths& paths, const Recipe& recipe) {
  std::vector<std::string> lost;
  const auto lose = [&](bool is, std::string what) {
    if (is) lost.push_back(std::move(what));
  };
  lose(recipe.offload_parameters, "parameters in host memory");
  lose(recipe.offload_optimizer && paths.offload_optimizer.empty(), "optimizer states in host memory");
  lose(recipe.zero > 1 && paths.sharding.empty(), fmt::format("ZeRO {}: at most 1", recipe.zero));
  lose(recipe.copies > 1 && paths.copies.empty(), fmt::format("sharding within {} replicas", recipe.copies));
  lose(!recipe.schedule.empty(), fmt::format("schedule {}", recipe.schedule));
  lose(recipe.order != kUsualOrder && (recipe.order != kPipelineInside || paths.pipeline_inside.empty()),
       fmt::format("rank order {}", recipe.order));
  return lost;
}

}  // namespace weft::recipe
