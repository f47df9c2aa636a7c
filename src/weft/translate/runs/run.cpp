#include "weft/translate/runs/run.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "weft/translate/runs/run_fields.h"
#include "weft/translate/runs/run_model.h"

namespace weft::runs {
namespace {

using recipe::Precision;
using recipe::Recompute;

constexpr double kGiB = 1024.0 * 1024 * 1024, kGB = 1e9;

// Devices as tables name them, and the nodes they come in: NVLink or Infinity Fabric within (data sheets, each way),
// a network port per device across.
struct KnownDevice {
  std::string_view prefix, name;
  std::int64_t per_node;
  double within_gbps, across_gbps;
};
constexpr KnownDevice kDevices[] = {
    {"v100", "v100", 8, 150, 12.5},
    {"a100", "a100", 8, 300, 25},
    {"h100", "h100", 8, 450, 50},
    {"h200", "h200", 8, 450, 50},
    {"gb300", "gb300", 72, 900, 100},
    {"gb200", "gb200", 72, 900, 50},
    {"b300", "b300", 8, 900, 100},
    {"b200", "b200", 8, 900, 50},
    {"mi300x", "mi300x", 8, 448, 50},
    {"mi325x", "mi325x", 8, 448, 50},
    {"mi355x", "mi355x", 8, 538, 50},
    {"l40s", "l40s", 8, 32, 25},
    {"rtxpro6000", "rtx_pro_6000", 8, 64, 25},
};

const KnownDevice* find_device(std::string_view device) {
  const std::string name = plain(device);
  for (const KnownDevice& known : kDevices)
    if (name.starts_with(known.prefix)) return &known;
  return nullptr;
}

Precision precision_of(Fields& fields) {
  const std::string word = plain(fields.text("precision") + fields.text("fp"));
  if (word.find("fp4") != std::string::npos) return Precision::nvfp4;
  if (word.find("fp8") != std::string::npos || word == "8") return Precision::fp8;
  if (word.find("bf16") != std::string::npos) return Precision::bf16;
  if (word.find("fp16") != std::string::npos || word == "f16") return Precision::f16;
  if (word.find("fp32") != std::string::npos || word == "f32") return Precision::f32;
  if (word.empty()) return Precision::bf16;
  fields.fail(fmt::format("precision must be fp32, fp16, bf16, fp8, mxfp8 or nvfp4, found {}",
                          fields.text("precision")));
  return Precision::bf16;
}

Recompute recompute_of(Fields& fields) {
  const std::string word = fields.text("recompute");
  if (word.starts_with("full")) return Recompute::full;
  if (word.starts_with("selective") || word.starts_with("mlp")) return Recompute::selective;
  if (!word.empty() && word != "none" && word != "0")
    fields.fail(fmt::format("recompute must be none, selective or full, found {}", word));
  return Recompute::none;
}

RunCluster cluster_of(Fields& fields) {
  RunCluster cluster;
  cluster.device = fields.text("gpu");
  const KnownDevice* const known = find_device(cluster.device);
  if (cluster.device.empty()) fields.fail("gpu is missing");
  if (!cluster.device.empty() && known == nullptr)
    fields.fail(fmt::format("unknown device: {}", cluster.device));
  cluster.devices = fields.needed("gpus");
  if (cluster.devices > kMostDegree) {
    fields.fail(fmt::format("gpus must be at most {}, found {}", kMostDegree, cluster.devices));
    cluster.devices = kMostDegree;
  }
  const std::int64_t nodes = fields.whole("nodes", 0);
  std::int64_t per_node = fields.whole("gpus_per_node", 0);
  if (per_node == 0 && nodes > 0) per_node = cluster.devices / nodes;
  if (known != nullptr && (per_node == 0 || known->per_node > 8)) per_node = known->per_node;
  per_node = std::clamp<std::int64_t>(per_node, 1, cluster.devices);
  // Of a rack of 72 jobs use as many as divide theirs.
  while (cluster.devices % per_node != 0) --per_node;
  cluster.devices_per_node = per_node;
  cluster.fabric = fields.text("network");
  cluster.memory_bytes = fields.number("gpu_memory_gb") * kGB;
  cluster.memory_bytes_per_second = fields.number("gpu_bandwidth_gbps") * kGB;
  cluster.within_bytes_per_second =
      fields.number("within_gbps", known != nullptr ? known->within_gbps : 0) * kGB;
  cluster.across_bytes_per_second =
      fields.number("across_gbps", known != nullptr ? known->across_gbps : 0) * kGB;
  return cluster;
}

recipe::Recipe recipe_of(Fields& fields, const RunCluster& cluster) {
  recipe::Recipe recipe;
  recipe.devices = cluster.devices;
  recipe.tensor = fields.degree("tp");
  recipe.pipeline = fields.degree("pp");
  recipe.context = fields.degree("cp");
  recipe.expert = fields.degree("ep");
  // Megatron and NeMo slice experts as the rest of the model, unless they are told otherwise. Tables of recipes for
  // mixtures leave out that theirs are whole.
  const bool by_default = fields.text("framework") == "nemo" || fields.text("framework") == "megatron";
  recipe.expert_tensor = fields.whole("etp", recipe.expert > 1 && !by_default ? 1 : 0);
  recipe.virtual_stages = fields.degree("vp");
  const std::int64_t model = recipe.tensor * recipe.pipeline * recipe.context;
  if (recipe.devices % model != 0)
    fields.fail(fmt::format("tp x pp x cp must divide gpus, found {} and {}", model, recipe.devices));
  recipe.data = std::max<std::int64_t>(recipe.devices / model, 1);
  if (const std::int64_t stated = fields.whole("dp", recipe.data); stated != recipe.data)
    fields.fail(fmt::format("dp must be gpus / (tp x pp x cp) = {}, found {}", recipe.data, stated));
  // Megatron's recipes of today shard the optimizer; older tables say what they do.
  recipe.zero = static_cast<int>(fields.whole("zero", fields.text("stack") == "megatron" ? 1 : 0, 3));
  if (const std::int64_t sharded = fields.whole("fsdp", 0); sharded > 1) {
    recipe.zero = 3;
    recipe.copies = std::max<std::int64_t>(recipe.data / sharded, 1);
  }
  recipe.micro_batch = fields.whole("mbs", 0);
  recipe.global_batch = fields.whole("gbs", 0);
  const std::int64_t local = fields.whole("local_batch", 0);
  // torchtitan passes one example at a time through stages, unless its configuration says otherwise.
  if (recipe.micro_batch == 0)
    recipe.micro_batch = recipe.pipeline > 1 ? std::min<std::int64_t>(local, 1) : local;
  if (recipe.micro_batch == 0) fields.fail("mbs is missing");
  if (recipe.global_batch == 0 && local > 0) recipe.global_batch = local * recipe.data;
  if (recipe.global_batch == 0) fields.fail("gbs is missing");
  if (recipe.micro_batch > 0 && recipe.global_batch % (recipe.micro_batch * recipe.data) != 0)
    fields.fail(fmt::format("mbs x dp must divide gbs, found {} and {}", recipe.micro_batch * recipe.data,
                            recipe.global_batch));
  recipe.sequence = fields.whole("seq", 0);
  // Where a table does not say, tensor parallelism goes with sequence parallelism, as launchers do today.
  recipe.sequence_parallel = fields.whole("sp", recipe.tensor > 1 ? 1 : 0) == 1;
  recipe.recompute = recompute_of(fields);
  recipe.precision = precision_of(fields);
  recipe.overlap_reduce = recipe.overlap_gather = fields.whole("overlap", 1) == 1;
  const std::string schedule = fields.text("schedule");
  if (!schedule.empty() && !schedule.starts_with("1f1b") && schedule != "interleaved")
    fields.fail(fmt::format("schedule {} is not estimated", schedule));
  return recipe;
}

// Why a row says nothing of a training step; empty where it does.
std::string why_left_out(const Fields& fields) {
  const std::string task = fields.text("task"), model = fields.text("model");
  if (!task.empty() && task != "pretrain") return fmt::format("the task is {}", task);
  if (model.find("lora") != std::string::npos) return "the task is lora";
  for (const char* doubt : {"trust", "gbs_ok", "consistent"})
    if (fields.text(doubt) == "0") return fmt::format("the table doubts it: {} = 0", doubt);
  if (fields.has("beyond")) return fmt::format("{} is not estimated", fields.text("beyond"));
  if (fields.text("cpu_offload") == "true") return "parameter offload is not estimated";
  return {};
}

Outcome outcome_of(Fields& fields) {
  const std::string status = fields.text("status"), why = fields.text("fail_class");
  if (fields.text("oom") == "true" || status == "oom" || why == "oom_by_state") return Outcome::out_of_memory;
  if (why == "oom_by_extrapolation") return Outcome::presumed_out_of_memory;
  if (status == "failed") fields.fail(fmt::format("it failed, but not by memory: {}", why));
  return Outcome::ran;
}

double step_seconds_of(Fields& fields, const Run& run) {
  if (fields.has("step_s")) return fields.number("step_s");
  if (fields.has("step_ms")) return fields.number("step_ms") / 1e3;
  const double rate = fields.number("tok_s_gpu");
  if (rate > 0) return run.tokens() / rate / static_cast<double>(run.cluster.devices);
  return 0;
}

double peak_bytes_of(Fields& fields) {
  for (const char* gib : {"mem_gib", "peak_alloc_gib"})
    if (fields.has(gib)) return fields.number(gib) * kGiB;
  if (fields.has("peak_bytes")) return fields.number("peak_bytes");
  return fields.number("mem_gb") * kGB;
}

std::vector<double> peaks_by_rank(const std::string& text) {
  std::vector<double> peaks;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    double gib = 0;
    std::from_chars(text.data() + at, text.data() + end, gib);
    peaks.push_back(gib * kGiB);
    at = end + 1;
  }
  return peaks;
}

}  // namespace

std::string device_name(std::string_view device) {
  const KnownDevice* const known = find_device(device);
  return known == nullptr ? std::string() : std::string(known->name);
}

Result<Run> run_of(const RunRow& row) {
  Fields fields(row);
  if (const std::string why = why_left_out(fields); !why.empty()) return user_error(why);
  Run run;
  run.id = row.id;
  run.stack = fields.text("stack");
  run.cluster = cluster_of(fields);
  run.config = config_of(fields);
  run.recipe = recipe_of(fields, run.cluster);
  run.outcome = outcome_of(fields);
  run.step_seconds = run.outcome == Outcome::ran ? step_seconds_of(fields, run) : 0;
  run.peak_bytes = peak_bytes_of(fields);
  const std::string peak_of = fields.text("mem_of");
  if (peak_of == "first_stage") run.peak_of = PeakOf::first_stage;
  if (peak_of == "last_stage") run.peak_of = PeakOf::last_stage;
  run.peak_bytes_by_rank = peaks_by_rank(fields.text("alloc_gib_by_rank"));
  run.series = fmt::format("{} {}", fields.text("model"), run.cluster.device);
  if (run.outcome == Outcome::ran && run.step_seconds == 0 && run.peak_bytes == 0)
    fields.fail("neither a step time nor memory was measured");
  if (fields.error()) return *fields.error();
  return run;
}

}  // namespace weft::runs
