#include "weft/translate/recipe/recipe.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>

#include <fmt/format.h>

namespace weft::recipe {
namespace {

constexpr std::int64_t kMostDegree = 1 << 24;
constexpr std::int64_t kMostSteps = 1 << 20;  // tried above a degree

// "the nearest that divide 96: 6 and 8"
std::string nearest_divisors(std::int64_t parts, std::int64_t whole) {
  if (whole < 1 || std::min(parts, whole) > kMostSteps) return {};
  std::int64_t below = std::min(parts, whole), above = parts;
  while (whole % below != 0) --below;
  const std::int64_t most = std::min(whole, parts + kMostSteps);
  while (above < most && whole % above != 0) ++above;
  if (above > most || above > whole || whole % above != 0)
    return fmt::format("the nearest that divides {}: {}", whole, below);
  return fmt::format("the nearest that divide {}: {} and {}", whole, below, above);
}

Status divides(std::string_view what, std::int64_t parts, std::string_view whole_name, std::int64_t whole) {
  if (whole == 0 || whole % parts == 0) return {};
  return user_error(fmt::format("{} does not divide {}: {} and {}", what, whole_name, parts, whole),
                    nearest_divisors(parts, whole));
}

// "the nearest batches: 504 and 512"
std::string nearest_batches(std::int64_t at_once, std::int64_t batch) {
  if (at_once == 0) return {};
  const std::int64_t below = batch / at_once * at_once;
  if (below == 0) return fmt::format("the least batch is {}", at_once);
  return fmt::format("the nearest batches: {} and {}", below, below + at_once);
}

Status check_degrees(const Recipe& recipe) {
  const std::pair<std::string_view, std::int64_t> degrees[] = {
      {"tensor", recipe.tensor}, {"pipeline", recipe.pipeline}, {"context", recipe.context},
      {"expert", recipe.expert}, {"copies", recipe.copies},     {"virtual stages", recipe.virtual_stages}};
  for (const auto& [what, degree] : degrees)
    if (degree < 1 || degree > kMostDegree)
      return user_error(
          fmt::format("{}: expected a degree from 1 to {}, found {}", what, kMostDegree, degree));
  return {};
}

Status check_devices(const Recipe& recipe, std::int64_t devices) {
  if (devices == 0) return {};
  // Each is at most 2^24. So the product of the first three fits 64 bits if it fits the devices.
  const std::int64_t inner = recipe.tensor * recipe.pipeline;
  if (inner > devices || inner * recipe.context > devices || devices % (inner * recipe.context) != 0)
    return user_error(
        fmt::format("tensor x pipeline x context does not divide the number of devices: {} x {} x {} and {}",
                    recipe.tensor, recipe.pipeline, recipe.context, devices),
        recipe.pipeline == 1 && recipe.context == 1 ? nearest_divisors(recipe.tensor, devices)
                                                    : std::string());
  const std::int64_t left = devices / (inner * recipe.context);
  if (recipe.data != 0 && recipe.data != left)
    return user_error(
        fmt::format(
            "tensor x pipeline x context x data is not the number of devices: {} x {} x {} x {} and {}",
            recipe.tensor, recipe.pipeline, recipe.context, recipe.data, devices),
        fmt::format("data would be {}", left));
  if (left % recipe.copies != 0)
    return user_error(fmt::format("copies do not divide data: {} and {}", recipe.copies, left));
  const std::int64_t expert_tensor = recipe.expert_tensor == 0 ? recipe.tensor : recipe.expert_tensor;
  const std::int64_t stage = devices / recipe.pipeline;
  if (recipe.expert > 1 && (expert_tensor > stage || recipe.expert > stage / expert_tensor ||
                            stage % (expert_tensor * recipe.expert) != 0))
    return user_error(
        fmt::format("expert x expert tensor does not divide the devices of a stage: {} x {} and {}",
                    recipe.expert, expert_tensor, stage));
  return {};
}

Status check_batches(const Recipe& recipe, std::int64_t data) {
  if (recipe.micro_batch == 0 || recipe.global_batch == 0 || data == 0) return {};
  if (recipe.micro_batch > recipe.global_batch || data > recipe.global_batch / recipe.micro_batch ||
      recipe.global_batch % (recipe.micro_batch * data) != 0)
    return user_error(
        fmt::format("micro-batch x data does not divide the global batch: {} x {} and {}", recipe.micro_batch,
                    data, recipe.global_batch),
        nearest_batches(
            recipe.micro_batch > kMostDegree || data > kMostDegree ? 0 : recipe.micro_batch * data,
            recipe.global_batch));
  const std::int64_t passes = recipe.global_batch / (recipe.micro_batch * data);
  if (recipe.virtual_stages > 1 && passes % recipe.pipeline != 0)
    return user_error(fmt::format("virtual stages need micro-batches that pipeline divides: {} and {}",
                                  passes, recipe.pipeline));
  return {};
}

Status check_model(const Recipe& recipe) {
  const ModelShape& model = recipe.model;
  WEFT_TRY_STATUS(divides("tensor", recipe.tensor, "the attention heads", model.heads));
  if (model.key_heads >= recipe.tensor)
    WEFT_TRY_STATUS(divides("tensor", recipe.tensor, "the key heads", model.key_heads));
  WEFT_TRY_STATUS(divides("expert", recipe.expert, "the experts", model.experts));
  if (const std::vector<std::int64_t>& stages = recipe.stage_layers; !stages.empty()) {
    const std::int64_t runs = recipe.pipeline * recipe.virtual_stages;
    if (static_cast<std::int64_t>(stages.size()) != runs)
      return user_error(fmt::format("layers are given for another number of virtual stages: {} and {}",
                                    stages.size(), runs));
    const std::int64_t all = std::accumulate(stages.begin(), stages.end(), std::int64_t{0});
    if (model.layers > 0 && all != model.layers)
      return user_error(fmt::format("the layers of the stages do not add up: {} and {}", all, model.layers));
  } else if (recipe.virtual_stages > 1)
    WEFT_TRY_STATUS(divides("pipeline x virtual stages", recipe.pipeline * recipe.virtual_stages,
                            "the layers", model.layers));
  if (recipe.context > 1)
    WEFT_TRY_STATUS(divides("twice the context degree", 2 * recipe.context, "the sequence", recipe.sequence));
  if (recipe.sequence_parallel)
    WEFT_TRY_STATUS(divides("tensor", recipe.tensor, "the sequence", recipe.sequence));
  if (recipe.pipeline > 1 && model.layers > 0 && recipe.pipeline > model.layers + 2)
    return user_error(
        fmt::format("more pipeline stages than layers: {} and {}", recipe.pipeline, model.layers));
  return {};
}

}  // namespace

std::int64_t Recipe::data_degree() const {
  if (data != 0) return data;
  const std::int64_t inner = tensor * pipeline * context;
  return devices != 0 && inner > 0 && devices % inner == 0 ? devices / inner : 0;
}

std::int64_t Recipe::micro_batches() const {
  const std::int64_t degree = data_degree();
  if (micro_batch == 0 || global_batch == 0 || degree == 0) return 0;
  return global_batch / (micro_batch * degree);
}

bool same_plan(const Recipe& a, const Recipe& b) {
  const auto facts = [](const Recipe& r) {
    return std::tuple(r.tensor, r.pipeline, r.context, r.expert,
                      r.expert_tensor == 0 ? r.tensor : r.expert_tensor, r.virtual_stages, r.data_degree(),
                      r.copies, r.micro_batch, r.global_batch, r.sequence, r.sequence_parallel, r.recompute,
                      r.recompute_layers, r.stage_layers, r.zero, r.offload_optimizer, r.offload_parameters,
                      r.overlap_reduce, r.precision, r.bucket, r.order, r.schedule);
  };
  return facts(a) == facts(b);
}

Status check(const Recipe& recipe, std::int64_t devices) {
  WEFT_TRY_STATUS(check_degrees(recipe));
  if (devices != 0 && recipe.devices != 0 && devices != recipe.devices)
    return user_error(
        fmt::format("the recipe is for another number of devices than the cluster has: {} and {}",
                    recipe.devices, devices));
  const std::int64_t all = devices != 0 ? devices : recipe.devices;
  WEFT_TRY_STATUS(check_devices(recipe, all));
  if (recipe.virtual_stages > 1 && recipe.pipeline < 2)
    return user_error(fmt::format("virtual stages need a pipeline: {} virtual stages, {} stage",
                                  recipe.virtual_stages, recipe.pipeline));
  if (recipe.offload_parameters && recipe.zero < 3)
    return user_error(fmt::format("offloading parameters needs ZeRO 3, found ZeRO {}", recipe.zero));
  Recipe known = recipe;
  known.devices = all;
  WEFT_TRY_STATUS(check_batches(recipe, known.data_degree()));
  return check_model(recipe);
}

std::string_view name(Recompute recompute) {
  switch (recompute) {
    case Recompute::none: return "none";
    case Recompute::selective: return "selective";
    case Recompute::full: break;
  }
  return "full";
}

bool is_narrow(Precision precision) { return precision == Precision::fp8 || precision == Precision::nvfp4; }

std::string_view name(Precision precision) {
  switch (precision) {
    case Precision::f32: return "f32";
    case Precision::f16: return "f16";
    case Precision::bf16: return "bf16";
    case Precision::fp8: return "fp8";
    case Precision::nvfp4: break;
  }
  return "nvfp4";
}

}  // namespace weft::recipe
