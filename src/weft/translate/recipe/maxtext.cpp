// MaxText: base.yml with changes, or overrides such as ici_fsdp_parallelism=8. Degrees are given twice: ici_
// within a slice or host, dcn_ across them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "weft/formats/value.h"
#include "weft/translate/recipe/fields.h"
#include "weft/translate/recipe/languages.h"

namespace weft::recipe {
namespace {

constexpr std::string_view kBatch = "per_device_batch_size", kPasses = "gradient_accumulation_steps",
                           kLength = "max_target_length", kPolicy = "remat_policy",
                           kStageBatches = "num_pipeline_microbatches", kRepeats = "num_pipeline_repeats",
                           kShardOptimizer = "shard_optimizer_over_data",
                           kHostOptimizer = "optimizer_memory_host_offload",
                           kHostParameters = "parameter_memory_host_offload", kDataType = "dtype",
                           kQuantization = "quantization";

// The mesh axes that a recipe has a degree for.
enum Axis { data, fsdp, context, tensor, tensor_sequence, pipeline, expert };
constexpr std::string_view kAxes[] = {"data",     "fsdp",  "context", "tensor", "tensor_sequence",
                                      "pipeline", "expert"};
constexpr std::size_t kAxisCount = std::size(kAxes);
// Axes that a recipe has no degree for: they must be 1.
constexpr std::string_view kOtherAxes[] = {"fsdp_transpose", "sequence", "tensor_transpose",
                                           "context_autoregressive", "autoregressive"};

std::string on(std::string_view level, std::string_view axis) {
  return fmt::format("{}_{}_parallelism", level, axis);
}

struct Degrees {
  std::int64_t ici[kAxisCount], dcn[kAxisCount];

  std::int64_t of(Axis axis) const { return ici[axis] * dcn[axis]; }
};

// -1 is the remaining devices of a slice, or the remaining slices.
Result<Degrees> read_degrees(Fields& fields, std::int64_t devices) {
  Degrees degrees{};
  for (const std::string_view level : {"dcn", "ici"}) {
    const bool within = level == "ici";
    std::int64_t product = 1, open = -1;
    for (std::size_t a = 0; a < kAxisCount; ++a) {
      const bool is_rest = within ? a == fsdp : a == data;  // base.yml's defaults
      const std::string path = on(level, kAxes[a]);
      WEFT_TRY(degree, fields.count(path, is_rest ? -1 : 1, -1));
      if (degree == 0 || degree > (1 << 24))
        return user_error(
            fmt::format("{}: expected 1 to {}, or -1 for the rest, found {}", path, 1 << 24, degree));
      if (degree == -1 && open >= 0)
        return user_error(fmt::format("{} and {} are both -1", path, on(level, kAxes[open])));
      if (degree == -1) open = static_cast<std::int64_t>(a);
      (within ? degrees.ici : degrees.dcn)[a] = degree;
      if (degree > 0 && __builtin_mul_overflow(product, degree, &product))
        return user_error(fmt::format("the degrees of {} are too large", level));
    }
    for (const std::string_view other : kOtherAxes) {
      WEFT_TRY(degree, fields.count(on(level, other), 1));
      if (degree != 1)
        return user_error(fmt::format("{}: expected 1, found {}", on(level, other), degree),
                          "this axis is not estimated");
    }
    if (open < 0) continue;
    if (!within) {
      degrees.dcn[open] = 1;  // one slice, unless other degrees across slices are stated
      continue;
    }
    std::int64_t slices = 1;
    for (const std::int64_t degree : degrees.dcn)
      if (__builtin_mul_overflow(slices, degree, &slices))
        return user_error("the degrees of dcn are too large");
    if (devices > 0 && (slices > devices || devices / slices < product || devices % (slices * product) != 0))
      return user_error(
          fmt::format("the degrees within and across slices do not divide the devices: {} x {} and {}",
                      product, slices, devices));
    degrees.ici[open] = devices > 0 ? devices / slices / product : 1;
  }
  return degrees;
}

Recompute recompute_of_policy(std::string_view policy) {
  return policy == "full" ? Recompute::full : Recompute::selective;
}

}  // namespace

Result<Recipe> read_maxtext(std::string_view text, std::int64_t devices) {
  WEFT_TRY(fields, Fields::read(text));
  Recipe recipe;
  WEFT_TRY(degrees, read_degrees(fields, devices));
  recipe.tensor = degrees.of(tensor) * degrees.of(tensor_sequence);
  recipe.sequence_parallel = degrees.of(tensor_sequence) > 1;
  if (degrees.of(tensor) > 1 && degrees.of(tensor_sequence) > 1)
    return user_error("tensor and tensor_sequence parallelism are both above 1: one is estimated");
  recipe.pipeline = degrees.of(pipeline);
  recipe.context = degrees.of(context);
  recipe.expert = degrees.of(expert);
  // The batch is sliced over experts' devices, too.
  const std::int64_t copies = degrees.of(data), shards = degrees.of(fsdp) * recipe.expert;
  if (recipe.tensor > (1 << 24) || recipe.pipeline > (1 << 24) || recipe.context > (1 << 24) ||
      recipe.expert > (1 << 24) || copies > (1 << 24) || shards > (1 << 24))
    return user_error("parallel degrees are too large");
  recipe.data = copies * shards;
  recipe.devices = recipe.data * recipe.tensor;
  if (__builtin_mul_overflow(recipe.devices, recipe.pipeline, &recipe.devices) ||
      __builtin_mul_overflow(recipe.devices, recipe.context, &recipe.devices))
    return user_error("parallel degrees are too large");
  std::int64_t slices = 1;
  for (const std::int64_t degree : degrees.dcn) slices *= degree;
  if (slices > 1) recipe.per_node = recipe.devices / slices;
  WEFT_TRY(over_data, fields.truth(kShardOptimizer, false));
  recipe.zero = shards > 1 ? 3 : over_data && copies > 1 ? 1 : 0;
  recipe.copies = shards > 1 ? copies : 1;
  WEFT_TRY(per_device, fields.number(kBatch, 12));
  WEFT_TRY(passes, fields.count(kPasses, 1));
  WEFT_TRY(stage_batches, fields.count(kStageBatches, -1, -1));
  WEFT_TRY(repeats, fields.count(kRepeats, -1, -1));
  WEFT_TRY(length, fields.count(kLength, 2048));
  recipe.sequence = length;
  const double global = per_device * static_cast<double>(recipe.devices) * static_cast<double>(passes);
  if (!(global >= 1 && global <= 1e15) || std::abs(global - std::round(global)) > 1e-6 * global)
    return user_error(fmt::format("{} x devices x {} is not a whole batch: {} x {} x {}", kBatch, kPasses,
                                  per_device, recipe.devices, passes));
  recipe.global_batch = std::llround(global);
  const bool staged = recipe.pipeline > 1;
  const std::int64_t in_stages = !staged ? 1 : stage_batches > 0 ? stage_batches : recipe.pipeline;
  std::int64_t at_once = recipe.data;
  if (passes > (1 << 24) || in_stages > (1 << 24) ||
      __builtin_mul_overflow(at_once, passes * in_stages, &at_once))
    return user_error("there are too many micro-batches");
  if (recipe.global_batch % at_once != 0)
    return user_error(fmt::format("{}: the batch is not divisible by data x micro-batches: {} and {} x {}",
                                  kBatch, recipe.global_batch, recipe.data, at_once / recipe.data));
  recipe.micro_batch = recipe.global_batch / at_once;
  if (staged && repeats > 1) recipe.virtual_stages = repeats;
  if (staged) recipe.schedule = kAllForward;
  WEFT_TRY(policy, fields.word(kPolicy, "full"));
  recipe.recompute = recompute_of_policy(policy);
  recipe.others.emplace_back(kPolicy, policy);
  if (policy != "full" && policy != "minimal")
    recipe.notes.push_back(fmt::format("{} {} is estimated as minimal", kPolicy, formats::shown(policy)));
  WEFT_TRY(optimizer, fields.truth(kHostOptimizer, false));
  WEFT_TRY(parameters, fields.truth(kHostParameters, false));
  recipe.offload_optimizer = optimizer;
  recipe.offload_parameters = parameters;
  WEFT_TRY(type, fields.word(kDataType, "bfloat16"));
  WEFT_TRY(quantization, fields.word(kQuantization, ""));
  if (type != "bfloat16" && type != "float32")
    return user_error(
        fmt::format("{}: expected bfloat16 or float32, found '{}'", kDataType, formats::shown(type)));
  recipe.precision = type == "float32" ? Precision::f32 : Precision::bf16;
  if (quantization.find("fp8") != std::string::npos) recipe.precision = Precision::fp8;
  recipe.overlap_reduce = recipe.overlap_gather = true;  // XLA schedules collectives beside products
  const std::pair<std::string_view, std::int64_t*> sizes[] = {
      {"base_emb_dim", &recipe.model.hidden},
      {"base_mlp_dim", &recipe.model.inner},
      {"base_num_query_heads", &recipe.model.heads},
      {"base_num_kv_heads", &recipe.model.key_heads},
      {"base_num_decoder_layers", &recipe.model.layers},
      {"num_experts", &recipe.model.experts},
      {"vocab_size", &recipe.model.words}};
  for (const auto& [path, field] : sizes) {
    WEFT_TRY(count, fields.count(path, 0));
    *field = count;
  }
  std::vector<std::string> names;
  for (const std::string_view level : {"ici", "dcn"})
    for (const std::string_view axis : kAxes) names.push_back(on(level, axis));
  std::vector<std::string_view> known(names.begin(), names.end());
  known.insert(known.end(), {kBatch, kPasses, kLength, kPolicy, kStageBatches, kRepeats, kDataType});
  WEFT_TRY_STATUS(fields.keep_rest(recipe, known));
  WEFT_TRY_STATUS(check(recipe));
  return recipe;
}

// Degrees are across slices from the outermost in, if the recipe states the devices per node.
Settings settings_maxtext(const Recipe& recipe) {
  Settings settings;
  const auto put = [&](std::string_view path, std::string value) {
    settings.push_back({std::string(path), std::move(value)});
  };
  const auto count = [&](const std::string& path, std::int64_t value) { put(path, std::to_string(value)); };
  const std::int64_t all = std::max<std::int64_t>(recipe.data_degree(), 1);
  const bool shards = recipe.zero == 3;
  const std::int64_t copies =
      shards ? std::max<std::int64_t>(recipe.copies, 1) : std::max<std::int64_t>(all / recipe.expert, 1);
  // Slices are hosts of GPUs: what is outermost is across them.
  const std::int64_t hosts =
      recipe.per_node > 0 && recipe.devices > recipe.per_node && recipe.devices % recipe.per_node == 0
          ? recipe.devices / recipe.per_node
          : 1;
  std::int64_t left = hosts;
  const auto degree = [&](Axis axis, std::int64_t size) {
    const std::int64_t across = std::gcd(size, left);
    left /= across;
    if (hosts > 1) count(on("dcn", kAxes[axis]), across);
    count(on("ici", kAxes[axis]), size / across);
  };
  degree(pipeline, recipe.pipeline);
  degree(data, copies);
  degree(fsdp, shards ? std::max<std::int64_t>(all / copies / recipe.expert, 1) : 1);
  degree(expert, recipe.expert);
  degree(context, recipe.context);
  degree(tensor, recipe.sequence_parallel ? 1 : recipe.tensor);
  degree(tensor_sequence, recipe.sequence_parallel ? recipe.tensor : 1);
  if (recipe.zero == 1) put(kShardOptimizer, "true");
  const std::int64_t devices = all * recipe.tensor * recipe.pipeline * recipe.context;
  const std::int64_t batches = std::max<std::int64_t>(recipe.micro_batches(), 1);
  const bool staged = recipe.pipeline > 1;
  if (recipe.global_batch > 0) {
    const double per_device = static_cast<double>(recipe.global_batch) / static_cast<double>(devices);
    put(kBatch, fmt::format("{}", staged ? per_device : per_device / static_cast<double>(batches)));
  }
  if (staged) {
    count(std::string(kStageBatches), batches);
    count(std::string(kRepeats), recipe.virtual_stages);
    count(std::string(kPasses), 1);
  } else {
    count(std::string(kPasses), batches);
  }
  if (recipe.sequence > 0) count(std::string(kLength), recipe.sequence);
  std::string policy = recipe.recompute == Recompute::full ? "full" : "minimal";
  for (const auto& [path, value] : recipe.others)
    if (path == kPolicy && recompute_of_policy(value) == recipe.recompute) policy = value;
  put(kPolicy, policy);
  if (recipe.offload_optimizer) put(kHostOptimizer, "true");
  if (recipe.offload_parameters) put(kHostParameters, "true");
  put(kDataType, recipe.precision == Precision::f32 ? "float32" : "bfloat16");
  if (recipe.precision == Precision::fp8) put(kQuantization, "fp8");
  return settings;
}

Written print_maxtext(const Recipe& recipe) {
  Settings settings = settings_maxtext(recipe);
  const std::pair<std::string_view, std::int64_t> sizes[] = {{"base_emb_dim", recipe.model.hidden},
                                                             {"base_mlp_dim", recipe.model.inner},
                                                             {"base_num_query_heads", recipe.model.heads},
                                                             {"base_num_kv_heads", recipe.model.key_heads},
                                                             {"base_num_decoder_layers", recipe.model.layers},
                                                             {"num_experts", recipe.model.experts},
                                                             {"vocab_size", recipe.model.words}};
  for (const auto& [path, value] : sizes)
    if (value > 0) settings.push_back({std::string(path), std::to_string(value)});
  for (const auto& [path, value] : recipe.others)
    if (!path.starts_with("--") && find(settings, path) == nullptr) settings.push_back({path, value});
  Written written{print(Syntax::yaml, settings), {}};
  const auto lose = [&](bool is, std::string what) {
    if (is) written.lost.push_back(std::move(what));
  };
  lose(recipe.zero == 2, "ZeRO 2: parameters are sharded too, or only the optimizer");
  lose(recipe.recompute == Recompute::none, "no recomputation: minimal repeats what is cheap");
  lose(recipe.recompute_layers > 0,
       fmt::format("recomputation of {} layers per stage", recipe.recompute_layers));
  lose(recipe.precision == Precision::f16, "f16");
  lose(recipe.precision == Precision::nvfp4, "nvfp4");
  lose(recipe.bucket > 0, fmt::format("bucket size {}", recipe.bucket));
  lose(recipe.pipeline > 1 && recipe.schedule != kAllForward, "schedule 1F1B: all forward passes come first");
  lose(recipe.order != kUsualOrder, fmt::format("rank order {}", recipe.order));
  return written;
}

}  // namespace weft::recipe
