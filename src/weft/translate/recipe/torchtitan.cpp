// torchtitan's job.toml. Degrees are in [parallelism], or in [training] and [experimental] in older
// versions.
#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/formats/value.h"
#include "weft/translate/recipe/fields.h"
#include "weft/translate/recipe/languages.h"

#ifdef WEFT_HAS_TOMLPLUSPLUS
// toml++ asserts that some invalid inputs, such as "[\\a]", cannot occur, and without assertions
// relies on it. Here they are reported as errors, also in release builds.
namespace weft::recipe {
struct UnreadableToml {};
[[noreturn]] inline void toml_is_unreadable() { throw UnreadableToml(); }
}  // namespace weft::recipe
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) ((expr) ? static_cast<void>(0) : ::weft::recipe::toml_is_unreadable())
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
#endif

namespace weft::recipe {
namespace {

constexpr std::string_view kLocalBatch = "training.local_batch_size";
[[maybe_unused]] constexpr std::string_view kOlderBatch = "training.batch_size";

// torch.distributed.pipelining's schedules, with the stages per rank that torchtitan gives them.
struct TorchSchedule {
  std::string_view name, schedule;
  std::int64_t stages;
  std::string_view note;
};
[[maybe_unused]] constexpr TorchSchedule kTorchSchedules[] = {
    {"1F1B", "", 1, ""},
    {"Interleaved1F1B", "", 2, ""},
    {"GPipe", kAllForward, 1, ""},
    {"ZBVZeroBubble", kZeroBubble, 2, ""},
    {"InterleavedZeroBubble", "", 2, "estimated as Interleaved1F1B"},
    {"LoopedBFS", "", 2, "estimated as Interleaved1F1B"},
    {"DualPipeV", kZeroBubble, 2, "estimated as ZBVZeroBubble"},
};

std::string_view print_schedule(const Recipe& recipe) {
  if (recipe.schedule == kZeroBubble) return "ZBVZeroBubble";
  if (recipe.schedule == kAllForward) return "GPipe";
  return recipe.virtual_stages > 1 ? "Interleaved1F1B" : "1F1B";
}

#ifdef WEFT_HAS_TOMLPLUSPLUS

constexpr std::size_t kMostTomlBytes = 1 << 20;

// The file's values by path: "parallelism.tensor_parallel_degree".
class Job {
 public:
  Job(const toml::table& table, std::string_view text)
      : table_(&table), written_(settings_in(Syntax::toml, text)) {}

  // `otherwise` if it is absent. -1 if torchtitan means the remaining devices.
  Result<std::int64_t> count(std::initializer_list<std::string_view> ways, std::int64_t otherwise,
                             bool left_over = false) {
    for (const std::string_view way : ways) {
      const auto node = find(way);
      if (!node) continue;
      const auto value = node.value_exact<std::int64_t>();
      if (!value || *value > (std::int64_t{1} << 40) || (*value < 1 && !(left_over && *value == -1)))
        return wrong(way, node,
                     left_over ? "a whole number of at least 1, or -1" : "a whole number of at least 1");
      return *value;
    }
    return otherwise;
  }

  Result<std::string> word(std::string_view way, std::string_view otherwise) {
    const auto node = find(way);
    if (!node) return std::string(otherwise);
    const auto value = node.value_exact<std::string>();
    if (!value) return wrong(way, node, "a word");
    return *value;
  }

  Result<bool> truth(std::string_view way, bool otherwise) {
    const auto node = find(way);
    if (!node) return otherwise;
    const auto value = node.value_exact<bool>();
    if (!value) return wrong(way, node, "true or false");
    return *value;
  }

  // Values that were not read: path and TOML text.
  std::vector<std::pair<std::string, std::string>> rest() const {
    std::vector<std::pair<std::string, std::string>> left;
    for (const auto& [section, node] : *table_) {
      if (const toml::table* inner = node.as_table()) {
        for (const auto& [key, value] : *inner) {
          const std::string way = fmt::format("{}.{}", section.str(), key.str());
          if (read_.contains(way)) continue;
          // Numbers keep the digits that the user wrote; what spans lines is printed anew.
          const Setting* const written = recipe::find(written_, way);
          const bool on_a_line = written != nullptr && !value.is_table() && !value.is_array() &&
                                 value.source().begin.line == value.source().end.line;
          left.emplace_back(way, on_a_line ? written->text : text_of(value));
        }
      } else {
        left.emplace_back(std::string(section.str()), text_of(node));
      }
    }
    return left;
  }

  Error wrong(std::string_view way, const toml::node_view<const toml::node>& node,
              std::string_view expected) const {
    const toml::source_position at = node.node()->source().begin;
    return user_error(fmt::format("{}: expected {}, found {} in line {}", way, expected,
                                  formats::shown(text_of(*node.node())), at.line));
  }

 private:
  static std::string text_of(const toml::node& node) {
    std::ostringstream out;
    node.visit([&](const auto& value) {
      if constexpr (toml::is_table<decltype(value)>)
        out << toml::toml_formatter(value,
                                    toml::toml_formatter::default_flags & ~toml::format_flags::indentation);
      else
        out << value;
    });
    return out.str();
  }

  toml::node_view<const toml::node> find(std::string_view way) {
    const auto node = table_->at_path(way);
    if (node) read_.emplace(way);
    return node;
  }

  const toml::table* table_;
  Settings written_;
  std::set<std::string, std::less<>> read_;
};

constexpr std::string_view kTitanKeys[] = {"data_parallel_replicate_degree",
                                           "data_parallel_shard_degree",
                                           "tensor_parallel_degree",
                                           "pipeline_parallel_degree",
                                           "pipeline_parallel_schedule",
                                           "pipeline_parallel_microbatch_size",
                                           "context_parallel_degree",
                                           "expert_parallel_degree",
                                           "expert_tensor_parallel_degree",
                                           "fsdp_reshard_after_forward",
                                           "enable_async_tensor_parallel",
                                           "disable_loss_parallel",
                                           "enable_compiled_autograd",
                                           "pipeline_parallel_split_points",
                                           "pipeline_parallel_layers_per_stage",
                                           "pipeline_parallel_first_stage_less_layers",
                                           "pipeline_parallel_last_stage_less_layers",
                                           "context_parallel_rotate_method"};

Status read_titan_degrees(Job& job, Recipe& recipe, bool& shards) {
  WEFT_TRY(tensor, job.count({"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"}, 1));
  WEFT_TRY(pipeline,
           job.count({"parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"}, 1));
  WEFT_TRY(context,
           job.count({"parallelism.context_parallel_degree", "experimental.context_parallel_degree"}, 1));
  WEFT_TRY(expert, job.count({"parallelism.expert_parallel_degree"}, 1));
  WEFT_TRY(expert_tensor, job.count({"parallelism.expert_tensor_parallel_degree"}, 0));
  WEFT_TRY(copies,
           job.count(
               {"parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"}, 1));
  WEFT_TRY(shard, job.count({"parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree"},
                            -1, true));
  recipe.tensor = tensor;
  recipe.pipeline = pipeline;
  recipe.context = context;
  recipe.expert = expert;
  recipe.expert_tensor = expert_tensor;
  recipe.sequence_parallel = tensor > 1;  // always part of its tensor-parallel plans
  shards = shard != 1;
  recipe.copies = shards ? copies : 1;
  if (shard > 0) {
    if (__builtin_mul_overflow(copies, shard, &recipe.data))
      return user_error("data parallel degrees are too large");
  }
  WEFT_TRY(schedule, job.word("parallelism.pipeline_parallel_schedule", "1F1B"));
  const auto found = std::ranges::find(kTorchSchedules, schedule, &TorchSchedule::name);
  if (found == std::end(kTorchSchedules)) {
    std::vector<std::string_view> names;
    for (const TorchSchedule& one : kTorchSchedules) names.push_back(one.name);
    return user_error(fmt::format("parallelism.pipeline_parallel_schedule: expected {}, found '{}'",
                                  fmt::join(names, ", "), formats::shown(schedule)));
  }
  if (recipe.pipeline > 1) {
    recipe.virtual_stages = found->stages;
    recipe.schedule = found->schedule;
    if (!found->note.empty()) recipe.notes.push_back(fmt::format("schedule {}: {}", schedule, found->note));
  }
  if (schedule != print_schedule(recipe))
    recipe.others.emplace_back("parallelism.pipeline_parallel_schedule", in_quotes(schedule));
  return {};
}

Status read_titan_batches(Job& job, Recipe& recipe) {
  WEFT_TRY(local, job.count({kLocalBatch, kOlderBatch}, 0));
  WEFT_TRY(global, job.count({"training.global_batch_size"}, 0, true));
  WEFT_TRY(micro, job.count({"parallelism.pipeline_parallel_microbatch_size"}, 1));
  WEFT_TRY(sequence, job.count({"training.seq_len"}, 0));
  recipe.sequence = sequence;
  // A pipeline splits the local batch into micro-batches; without one it is the micro-batch.
  recipe.micro_batch = recipe.pipeline > 1 ? micro : local;
  if (recipe.pipeline > 1 && local % micro != 0)
    return user_error(fmt::format(
        "pipeline_parallel_microbatch_size does not divide local_batch_size: {} and {}", micro, local));
  recipe.global_batch = std::max<std::int64_t>(global, 0);
  // Without a global batch each rank computes its local batch once per step.
  if (recipe.global_batch == 0 && local > 0) {
    if (__builtin_mul_overflow(local, recipe.data_degree(), &recipe.default_batch))
      return user_error("local_batch_size x data parallel degrees is too large");
    if (recipe.data > 0) recipe.global_batch = recipe.default_batch;
    if (recipe.data == 0) recipe.others.emplace_back(std::string(kLocalBatch), std::to_string(local));
  }
  return {};
}

Result<Recipe> read_job(const toml::table& table, std::string_view text, std::int64_t devices) {
  Job job(table, text);
  Recipe recipe;
  recipe.devices = devices;
  bool shards = true;
  WEFT_TRY_STATUS(read_titan_degrees(job, recipe, shards));
  WEFT_TRY_STATUS(read_titan_batches(job, recipe));
  WEFT_TRY(reshard, job.word("parallelism.fsdp_reshard_after_forward", "default"));
  if (reshard != "default" && reshard != "always" && reshard != "never")
    return user_error(
        fmt::format("parallelism.fsdp_reshard_after_forward: expected default, always or never, found '{}'",
                    formats::shown(reshard)));
  const bool keeps = reshard == "never" || (reshard == "default" && recipe.pipeline > 1);
  recipe.zero = !shards ? 0 : keeps ? 2 : 3;
  recipe.overlap_reduce = true;
  recipe.overlap_gather = shards;
  WEFT_TRY(mode, job.word("activation_checkpoint.mode", "selective"));
  constexpr std::string_view kModes[] = {"none", "selective", "full"};
  const auto found = std::ranges::find(kModes, mode);
  if (found == std::end(kModes))
    return user_error(fmt::format("activation_checkpoint.mode: expected none, selective or full, found '{}'",
                                  formats::shown(mode)));
  recipe.recompute = static_cast<Recompute>(found - std::begin(kModes));
  WEFT_TRY(offloads, job.truth("training.enable_cpu_offload", false));
  if (offloads && !shards)
    return user_error("training.enable_cpu_offload needs parallelism.data_parallel_shard_degree above 1");
  recipe.offload_optimizer = offloads;
  recipe.offload_parameters = offloads && recipe.zero == 3;
  WEFT_TRY(param, job.word("training.mixed_precision_param", "bfloat16"));
  if (param != "bfloat16" && param != "float32")
    return user_error(fmt::format("training.mixed_precision_param: expected bfloat16 or float32, found '{}'",
                                  formats::shown(param)));
  recipe.precision = param == "bfloat16" && (shards || recipe.tensor > 1) ? Precision::bf16 : Precision::f32;
  std::vector<std::string> kept;
  for (auto& [way, value] : job.rest()) {
    constexpr std::string_view kSection = "parallelism.";
    if (way.starts_with(kSection)) {
      const std::string key = way.substr(kSection.size());
      if (std::ranges::find(kTitanKeys, key) == std::end(kTitanKeys)) {
        if (const std::string hint = misspelling_hint(key, kTitanKeys); !hint.empty())
          return user_error(fmt::format("unknown key: {}", way), hint);
        recipe.notes.push_back(fmt::format("unknown, passed through: {}", way));
      } else {
        kept.push_back(way);
      }
    } else {
      kept.push_back(formats::shown(way));
    }
    recipe.others.emplace_back(way, value);
  }
  note_kept(recipe, kept);
  WEFT_TRY_STATUS(check(recipe));
  return recipe;
}

#endif

}  // namespace

Result<Recipe> read_torchtitan(std::string_view text, std::int64_t devices) {
#ifdef WEFT_HAS_TOMLPLUSPLUS
  if (text.size() > kMostTomlBytes)
    return user_error(
        fmt::format("expected at most {} bytes of TOML, found {}", kMostTomlBytes, text.size()));
  try {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed)
      return user_error(fmt::format("expected TOML, found an error in line {}, column {}: {}",
                                    parsed.error().source().begin.line, parsed.error().source().begin.column,
                                    formats::shown(parsed.error().description())));
    return read_job(parsed.table(), text, devices);
  } catch (const UnreadableToml&) {
    return user_error("expected TOML, found a name that does not begin with a letter, digit or quote");
  }
#else
  (void)text, (void)devices;
  return user_error("this Weft was built without toml++, which reads job.toml",
                    "install libtomlplusplus-dev and build again");
#endif
}

Settings settings_torchtitan(const Recipe& recipe) {
  const bool pipelined = recipe.pipeline > 1;
  const std::int64_t data = recipe.data_degree();
  Settings lines;
  const auto put = [&](std::string_view path, std::string value) {
    lines.push_back({std::string(path), std::move(value)});
  };
  const auto count = [&](std::string_view path, std::int64_t value) { put(path, std::to_string(value)); };
  const std::int64_t local = !pipelined ? recipe.micro_batch : data > 0 ? recipe.global_batch / data : 0;
  if (local > 0) count(kLocalBatch, local);
  if (recipe.global_batch > 0) count("training.global_batch_size", recipe.global_batch);
  if (recipe.sequence > 0) count("training.seq_len", recipe.sequence);
  put("training.mixed_precision_param",
      in_quotes(recipe.precision == Precision::f32 ? "float32" : "bfloat16"));
  count("parallelism.data_parallel_replicate_degree",
        recipe.zero == 0 ? std::max<std::int64_t>(data, 1) : recipe.copies);
  // If the recipe does not state the data degree, -1 is the rest of the devices.
  count("parallelism.data_parallel_shard_degree", recipe.zero == 0   ? 1
                                                  : recipe.data == 0 ? -1
                                                                     : recipe.data / recipe.copies);
  if (recipe.zero > 0)
    put("parallelism.fsdp_reshard_after_forward", in_quotes(recipe.zero == 3 ? "always" : "never"));
  count("parallelism.tensor_parallel_degree", recipe.tensor);
  count("parallelism.pipeline_parallel_degree", recipe.pipeline);
  if (pipelined) {
    put("parallelism.pipeline_parallel_schedule", in_quotes(print_schedule(recipe)));
    if (recipe.micro_batch > 0) count("parallelism.pipeline_parallel_microbatch_size", recipe.micro_batch);
  }
  count("parallelism.context_parallel_degree", recipe.context);
  if (recipe.expert > 1) count("parallelism.expert_parallel_degree", recipe.expert);
  if (recipe.expert_tensor > 0) count("parallelism.expert_tensor_parallel_degree", recipe.expert_tensor);
  if (recipe.offload_parameters || (recipe.offload_optimizer && recipe.zero == 2))
    put("training.enable_cpu_offload", "true");
  put("activation_checkpoint.mode", in_quotes(name(recipe.recompute)));
  return lines;
}

Written print_torchtitan(const Recipe& recipe) {
  Written written;
  Settings lines = settings_torchtitan(recipe);
  for (const auto& [way, value] : recipe.others)
    if (!way.starts_with("--") && way.find('.') != std::string::npos && find(lines, way) == nullptr)
      lines.push_back({way, value});
  // One section at a time, in order of first occurrence.
  std::vector<std::string> sections;
  const auto section_of = [](const std::string& way) { return way.substr(0, way.find('.')); };
  for (const auto& [way, value] : lines)
    if (std::ranges::find(sections, section_of(way)) == sections.end()) sections.push_back(section_of(way));
  for (const std::string& section : sections) {
    written.text += fmt::format("{}[{}]\n", written.text.empty() ? "" : "\n", section);
    for (const auto& [way, value] : lines)
      if (section_of(way) == section)
        written.text += fmt::format("{} = {}\n", way.substr(section.size() + 1), value);
  }
  const auto lose = [&](bool is, std::string what) {
    if (is) written.lost.push_back(std::move(what));
  };
  lose(recipe.zero == 1, "ZeRO 1: gradients are sharded too");
  lose(recipe.virtual_stages > 2,
       fmt::format("virtual stages {}: 2 per stage instead", recipe.virtual_stages));
  lose(!recipe.schedule.empty() && recipe.schedule != kZeroBubble && recipe.schedule != kAllForward,
       fmt::format("schedule {}", recipe.schedule));
  lose(recipe.offload_optimizer && !recipe.offload_parameters && recipe.zero != 2,
       "optimizer states in host memory");
  lose(recipe.precision == Precision::f16, "f16");
  lose(recipe.precision == Precision::fp8, "fp8: set by a model converter");
  lose(recipe.precision == Precision::nvfp4, "nvfp4: set by a model converter");
  lose(recipe.recompute_layers > 0,
       fmt::format("recomputation of {} layers per stage", recipe.recompute_layers));
  lose(recipe.bucket > 0, fmt::format("bucket size {}", recipe.bucket));
  lose(recipe.tensor > 1 && !recipe.sequence_parallel, "tensor parallel without sequence parallel");
  lose(recipe.order != kUsualOrder, fmt::format("rank order {}", recipe.order));
  return written;
}

}  // namespace weft::recipe
