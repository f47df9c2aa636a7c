// Megatron-LM's flags, with the meaning of megatron/training/arguments.py. Data parallelism takes
// the devices that the stated degrees leave.
#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "weft/translate/recipe/core_settings.h"
#include "weft/translate/recipe/fields.h"
#include "weft/translate/recipe/languages.h"
#include "weft/translate/recipe/pipeline_layout.h"
#include "weft/translate/recipe/uneven_stages.h"

namespace weft::recipe {
namespace {

constexpr std::size_t kMostFlags = 10'000;
constexpr std::int64_t kUsualRanks = 8;  // per node, for a written command

// Flags that affect the plan. A switch has no value.
constexpr std::string_view kCounts[] = {"tensor-model-parallel-size",
                                        "pipeline-model-parallel-size",
                                        "context-parallel-size",
                                        "expert-model-parallel-size",
                                        "expert-tensor-parallel-size",
                                        "num-layers-per-virtual-pipeline-stage",
                                        "num-virtual-stages-per-pipeline-rank",
                                        "micro-batch-size",
                                        "global-batch-size",
                                        "seq-length",
                                        "num-layers",
                                        "hidden-size",
                                        "ffn-hidden-size",
                                        "num-attention-heads",
                                        "num-query-groups",
                                        "num-experts",
                                        "padded-vocab-size",
                                        "recompute-num-layers",
                                        "ddp-bucket-size",
                                        "world-size",
                                        "nproc-per-node",
                                        "nproc_per_node",
                                        "nnodes",
                                        "num-distributed-optimizer-instances"};
constexpr std::string_view kSwitches[] = {"sequence-parallel",
                                          "use-distributed-optimizer",
                                          "overlap-grad-reduce",
                                          "overlap-param-gather",
                                          "recompute-activations",
                                          "bf16",
                                          "fp16",
                                          "group-query-attention",
                                          "use-tp-pp-dp-mapping",
                                          "use-megatron-fsdp",
                                          "optimizer-cpu-offload"};
constexpr std::string_view kWords[] = {"recompute-granularity", "recompute-method",
                                       "data-parallel-sharding-strategy", "fp8-format", "fp4-format"};
// Flags that change the step but are not part of the estimate.
struct Unpriced {
  std::string_view flag, note;
};
constexpr Unpriced kUnpriced[] = {
    {"tp-comm-overlap", "estimated without overlap of tensor-parallel communication"},
    {"pipeline-model-parallel-layout", "stages are estimated as equal"},
    {"decoder-first-pipeline-num-layers", "stages are estimated as equal"},
    {"decoder-last-pipeline-num-layers", "stages are estimated as equal"},
    {"account-for-embedding-in-pipeline-split", "stages are estimated as equal"},
    {"account-for-loss-in-pipeline-split", "stages are estimated as equal"},
    {"delay-wgrad-compute", "gradients of weights are estimated within the backward pass"},
    {"overlap-moe-expert-parallel-comm", "estimated without overlap of expert-parallel communication"},
    {"cpu-offloading-num-layers", "offloaded activations are estimated in device memory"},
    {"recompute-modules", "selective recomputation is estimated as Weft's"},
    {"fp8-param-gather", "parameters are estimated as gathered in bf16"},
    {"grad-reduce-in-bf16", "gradients are estimated as reduced in f32"},
    {"accumulate-allreduce-grads-in-fp32", "gradients are estimated as reduced in f32"},
    {"no-gradient-accumulation-fusion", "gradient accumulation is estimated as fused"},
    {"use-precision-aware-optimizer", "optimizer states are estimated in f32"},
    {"rampup-batch-size", "the estimate is for the full batch"},
};
// Flags that do not affect the plan: kept, and listed in one note.
constexpr std::string_view kPassed[] = {"lr",
                                        "min-lr",
                                        "lr-decay-style",
                                        "lr-decay-iters",
                                        "lr-decay-samples",
                                        "lr-warmup-iters",
                                        "lr-warmup-samples",
                                        "lr-warmup-fraction",
                                        "train-iters",
                                        "train-samples",
                                        "weight-decay",
                                        "adam-beta1",
                                        "adam-beta2",
                                        "adam-eps",
                                        "clip-grad",
                                        "init-method-std",
                                        "seed",
                                        "mock-data",
                                        "data-path",
                                        "split",
                                        "vocab-file",
                                        "merge-file",
                                        "vocab-size",
                                        "make-vocab-size-divisible-by",
                                        "tokenizer-type",
                                        "tokenizer-model",
                                        "save",
                                        "load",
                                        "save-interval",
                                        "eval-interval",
                                        "eval-iters",
                                        "log-interval",
                                        "tensorboard-dir",
                                        "distributed-backend",
                                        "attention-dropout",
                                        "hidden-dropout",
                                        "max-position-embeddings",
                                        "position-embedding-type",
                                        "rotary-base",
                                        "rotary-percent",
                                        "normalization",
                                        "norm-epsilon",
                                        "swiglu",
                                        "disable-bias-linear",
                                        "untie-embeddings-and-output-weights",
                                        "no-position-embedding",
                                        "use-flash-attn",
                                        "transformer-impl",
                                        "attention-softmax-in-fp32",
                                        "use-mcore-models",
                                        "moe-router-topk",
                                        "moe-router-load-balancing-type",
                                        "moe-aux-loss-coeff",
                                        "moe-grouped-gemm",
                                        "moe-token-dispatcher-type",
                                        "moe-ffn-hidden-size",
                                        "kv-channels",
                                        "no-masked-softmax-fusion",
                                        "initial-loss-scale",
                                        "loss-scale",
                                        "node_rank",
                                        "node-rank",
                                        "master_addr",
                                        "master-addr",
                                        "master_port",
                                        "master-port",
                                        "rdzv-id",
                                        "rdzv-backend",
                                        "rdzv-endpoint",
                                        "distributed-timeout-minutes",
                                        "num-workers"};

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Splits words like a shell: quotes preserve blanks, and a backslash at the end of a line is a
// blank.
Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = '\0';
  std::size_t quoted_at = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote)
        quote = '\0';
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      quoted_at = i;
      open = true;
    } else if (c == '\\' && i + 1 < text.size()) {
      if (text[++i] == '\n') continue;
      word += text[i];
      open = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (open) words.push_back(std::move(word));
      word.clear();
      open = false;
    } else {
      word += c;
      open = true;
    }
    if (words.size() > 4 * kMostFlags)
      return user_error(fmt::format("expected at most {} words, found more", 4 * kMostFlags));
  }
  if (quote != '\0')
    return user_error(fmt::format("a quote is not closed: {} at byte {}", quote, quoted_at), {},
                      Span{static_cast<std::uint32_t>(quoted_at), 1});
  if (open) words.push_back(std::move(word));
  return words;
}

using Flags = std::map<std::string, std::string, std::less<>>;  // by name; values joined by blanks

Result<std::int64_t> count_of(const Flags& flags, std::string_view name, std::int64_t otherwise) {
  const auto found = flags.find(name);
  if (found == flags.end()) return otherwise;
  return read_flag_count(name, found->second);
}

Error excludes(std::string_view one, std::string_view other) {
  return user_error(fmt::format("--{} and --{} are mutually exclusive", one, other));
}

Status needs(const Flags& flags, std::string_view one, std::string_view other) {
  if (!flags.contains(one) || flags.contains(other)) return {};
  return user_error(fmt::format("--{} needs --{}", one, other));
}

// Reads flags by name; unknown flags are kept in `recipe`.
Result<Flags> read_flags(const std::vector<std::string>& words, const Settings& as_written, Recipe& recipe) {
  std::vector<std::string_view> known(std::begin(kCounts), std::end(kCounts));
  known.insert(known.end(), std::begin(kSwitches), std::end(kSwitches));
  known.insert(known.end(), std::begin(kWords), std::end(kWords));
  known.insert(known.end(), std::begin(kPassed), std::end(kPassed));
  for (const Unpriced& unpriced : kUnpriced) known.push_back(unpriced.flag);
  std::vector<std::string> kept;
  auto raw = as_written.begin();
  Flags flags;
  std::size_t i = 0;
  while (i < words.size() && !words[i].starts_with("--")) ++i;  // skip the launcher, such as torchrun
  while (i < words.size()) {
    std::string flag = words[i++].substr(2);
    std::vector<std::string> values;
    if (const std::size_t equals = flag.find('='); equals != std::string::npos) {
      values.push_back(flag.substr(equals + 1));
      flag.resize(equals);
    }
    for (; i < words.size() && !words[i].starts_with("--"); ++i) {
      // The program's name is between the launcher's flags and its own.
      if (words[i].ends_with(".py")) continue;
      values.push_back(words[i]);
    }
    const std::string value = fmt::format("{}", fmt::join(values, " "));
    const bool is_switch = is_one_of(flag, kSwitches);
    if (is_switch || is_one_of(flag, kCounts) || is_one_of(flag, kWords)) {
      if (is_switch && !values.empty())
        return user_error(fmt::format("--{}: expected no value, found '{}'", flag, value));
      if (!is_switch && values.size() != 1)
        return user_error(fmt::format("--{}: expected one value, found {}", flag, values.size()));
      if (!flags.emplace(flag, value).second) return user_error(fmt::format("--{} is given twice", flag));
      continue;
    }
    const auto unpriced = std::ranges::find(kUnpriced, flag, &Unpriced::flag);
    if (unpriced != std::end(kUnpriced)) {
      recipe.notes.push_back(fmt::format("--{}: {}", flag, unpriced->note));
    } else if (is_one_of(flag, kPassed)) {
      kept.push_back("--" + flag);
    } else {
      if (const std::string hint = misspelling_hint(flag, known); !hint.empty())
        return user_error(fmt::format("unknown flag: --{}", flag), hint);
      recipe.notes.push_back(fmt::format("unknown, passed through: --{}", flag));
    }
    // As written, with its quotes; a flag may be given several times.
    raw = std::find_if(raw, as_written.end(), [&](const Setting& one) { return one.path == flag; });
    if (raw == as_written.end())
      return user_error(fmt::format("a quote is within a flag's name: --{}", flag));
    recipe.others.emplace_back("--" + flag, (raw++)->text);
  }
  note_kept(recipe, kept);
  return flags;
}

Status read_recomputation(const Flags& flags, Recipe& recipe) {
  const auto granularity = flags.find("recompute-granularity");
  if (flags.contains("recompute-activations")) {
    if (granularity != flags.end() && granularity->second != "selective")
      return excludes("recompute-activations", "recompute-granularity " + granularity->second);
    recipe.recompute = Recompute::selective;
  }
  if (granularity != flags.end()) {
    if (granularity->second != "full" && granularity->second != "selective")
      return user_error(fmt::format("--recompute-granularity: expected full or selective, found '{}'",
                                    granularity->second));
    recipe.recompute = granularity->second == "full" ? Recompute::full : Recompute::selective;
  }
  const auto method = flags.find("recompute-method");
  if (recipe.recompute == Recompute::full && method == flags.end())
    return user_error("--recompute-granularity full needs --recompute-method", "uniform or block");
  if (recipe.recompute != Recompute::full && method != flags.end())
    return user_error("--recompute-method needs --recompute-granularity full");
  if (method != flags.end() && method->second != "uniform" && method->second != "block")
    return user_error(
        fmt::format("--recompute-method: expected uniform or block, found '{}'", method->second));
  WEFT_TRY(layers, count_of(flags, "recompute-num-layers", 0));
  if (layers > 0 && method == flags.end())
    return user_error("--recompute-num-layers needs --recompute-method", "uniform or block");
  // uniform: recomputes all layers, this many at a time. block: recomputes the first ones of a
  // stage.
  if (method != flags.end() && method->second == "block")
    recipe.recompute_layers = layers;
  else if (layers > 1)
    recipe.others.emplace_back("--recompute-num-layers", std::to_string(layers));
  return {};
}

Status read_sharding(const Flags& flags, Recipe& recipe) {
  const bool distributed = flags.contains("use-distributed-optimizer"),
             fsdp = flags.contains("use-megatron-fsdp");
  recipe.overlap_reduce = flags.contains("overlap-grad-reduce");
  recipe.overlap_gather = flags.contains("overlap-param-gather");
  recipe.offload_optimizer = flags.contains("optimizer-cpu-offload");
  recipe.zero = distributed ? 1 : 0;
  if (!fsdp) WEFT_TRY_STATUS(needs(flags, "data-parallel-sharding-strategy", "use-megatron-fsdp"));
  if (fsdp) {
    const auto strategy = flags.find("data-parallel-sharding-strategy");
    const std::string word = strategy == flags.end() ? "no_shard" : strategy->second;
    constexpr std::string_view kStrategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    const auto found = std::ranges::find(kStrategies, word);
    if (found == std::end(kStrategies))
      return user_error(fmt::format("--data-parallel-sharding-strategy: expected {}, found '{}'",
                                    fmt::join(kStrategies, ", "), word));
    recipe.zero = static_cast<int>(found - std::begin(kStrategies));
  }
  if (recipe.overlap_gather) {
    if (!distributed && !fsdp)
      WEFT_TRY_STATUS(needs(flags, "overlap-param-gather", "use-distributed-optimizer"));
    WEFT_TRY_STATUS(needs(flags, "overlap-param-gather", "overlap-grad-reduce"));
  }
  WEFT_TRY(instances, count_of(flags, "num-distributed-optimizer-instances", 1));
  if (instances > 1 && recipe.zero == 0)
    return needs(flags, "num-distributed-optimizer-instances", "use-distributed-optimizer");
  recipe.copies = instances;
  return {};
}

Status read_sizes(const Flags& flags, Recipe& recipe) {
  const std::pair<std::string_view, std::int64_t*> counts[] = {
      {"tensor-model-parallel-size", &recipe.tensor},
      {"pipeline-model-parallel-size", &recipe.pipeline},
      {"context-parallel-size", &recipe.context},
      {"expert-model-parallel-size", &recipe.expert},
      {"expert-tensor-parallel-size", &recipe.expert_tensor},
      {"num-virtual-stages-per-pipeline-rank", &recipe.virtual_stages},
      {"micro-batch-size", &recipe.micro_batch},
      {"global-batch-size", &recipe.global_batch},
      {"seq-length", &recipe.sequence},
      {"ddp-bucket-size", &recipe.bucket},
      {"world-size", &recipe.devices},
      {"num-layers", &recipe.model.layers},
      {"hidden-size", &recipe.model.hidden},
      {"ffn-hidden-size", &recipe.model.inner},
      {"num-attention-heads", &recipe.model.heads},
      {"num-query-groups", &recipe.model.key_heads},
      {"num-experts", &recipe.model.experts},
      {"padded-vocab-size", &recipe.model.words}};
  for (const auto& [flag, field] : counts) {
    WEFT_TRY(count, count_of(flags, flag, *field));
    *field = count;
  }
  WEFT_TRY_STATUS(check_key_heads(recipe, "--tensor-model-parallel-size", "--num-query-groups"));
  if (flags.contains("nproc_per_node") && flags.contains("nproc-per-node"))
    return excludes("nproc_per_node", "nproc-per-node");
  const std::string_view per_node = flags.contains("nproc_per_node") ? "nproc_per_node" : "nproc-per-node";
  WEFT_TRY(ranks, count_of(flags, per_node, 0));
  WEFT_TRY(nodes, count_of(flags, "nnodes", 1));
  if (ranks > 0) {
    if (recipe.devices != 0 && recipe.devices != ranks * nodes)
      return user_error(fmt::format("--world-size is not --{} x --nnodes: {} and {} x {}", per_node,
                                    recipe.devices, ranks, nodes));
    recipe.devices = ranks * nodes;
    recipe.per_node = ranks;
  }
  WEFT_TRY(layers, count_of(flags, "num-layers-per-virtual-pipeline-stage", 0));
  if (layers == 0) return {};
  if (flags.contains("num-virtual-stages-per-pipeline-rank"))
    return excludes("num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank");
  if (recipe.model.layers == 0) return needs(flags, "num-layers-per-virtual-pipeline-stage", "num-layers");
  if (recipe.model.layers % recipe.pipeline != 0 || recipe.model.layers / recipe.pipeline % layers != 0)
    return user_error(fmt::format(
        "--num-layers-per-virtual-pipeline-stage does not divide the layers of a stage: {} and {} / {}",
        layers, recipe.model.layers, recipe.pipeline));
  recipe.virtual_stages = recipe.model.layers / recipe.pipeline / layers;
  return {};
}

}  // namespace

Result<Recipe> read_megatron(std::string_view text) {
  Recipe recipe;
  WEFT_TRY(words, split_words(text));
  WEFT_TRY(flags, read_flags(words, settings_in(Syntax::flags, text), recipe));
  WEFT_TRY_STATUS(read_sizes(flags, recipe));
  WEFT_TRY_STATUS(read_uneven_stages(recipe));
  WEFT_TRY_STATUS(read_recomputation(flags, recipe));
  WEFT_TRY_STATUS(read_sharding(flags, recipe));
  WEFT_TRY_STATUS(needs(flags, "num-query-groups", "group-query-attention"));
  if (flags.contains("bf16") && flags.contains("fp16")) return excludes("bf16", "fp16");
  if (flags.contains("bf16")) recipe.precision = Precision::bf16;
  if (flags.contains("fp16")) recipe.precision = Precision::f16;
  if (flags.contains("fp8-format")) {
    recipe.precision = Precision::fp8;
    if (!flags.contains("bf16")) return user_error("--fp8-format needs --bf16");
  }
  if (flags.contains("fp4-format")) {
    recipe.precision = Precision::nvfp4;
    if (!flags.contains("bf16")) return user_error("--fp4-format needs --bf16");
    if (flags.contains("fp8-format")) return excludes("fp4-format", "fp8-format");
  }
  recipe.sequence_parallel = flags.contains("sequence-parallel");
  if (recipe.sequence_parallel && recipe.tensor == 1) {
    recipe.sequence_parallel = false;
    recipe.notes.push_back("--sequence-parallel has no effect if --tensor-model-parallel-size is 1");
  }
  if (flags.contains("use-tp-pp-dp-mapping")) recipe.order = kPipelineInside;
  WEFT_TRY_STATUS(check(recipe));
  return recipe;
}

Settings settings_megatron(const Recipe& recipe) {
  Settings flags;
  const auto put = [&](std::string_view flag, std::string_view value) {
    flags.push_back({std::string(flag), std::string(value)});
  };
  const auto count = [&](std::string_view flag, std::int64_t value, std::int64_t usual) {
    if (value != usual) put(flag, std::to_string(value));
  };
  const auto truth = [&](std::string_view flag, bool is) {
    if (is) put(flag, {});
  };
  count("tensor-model-parallel-size", recipe.tensor, 1);
  truth("sequence-parallel", recipe.sequence_parallel && recipe.tensor > 1);
  count("pipeline-model-parallel-size", recipe.pipeline, 1);
  if (recipe.stage_layers.empty())
    count("num-virtual-stages-per-pipeline-rank", recipe.virtual_stages, 1);
  else
    put("pipeline-model-parallel-layout", fmt::format("\"{}\"", print_pipeline_layout(recipe.stage_layers)));
  count("context-parallel-size", recipe.context, 1);
  count("expert-model-parallel-size", recipe.expert, 1);
  count("expert-tensor-parallel-size", recipe.expert_tensor, 0);
  truth("use-tp-pp-dp-mapping", recipe.order == kPipelineInside);
  count("micro-batch-size", recipe.micro_batch, 0);
  count("global-batch-size", recipe.global_batch, 0);
  count("seq-length", recipe.sequence, 0);
  if (recipe.recompute != Recompute::none) put("recompute-granularity", name(recipe.recompute));
  if (recipe.recompute == Recompute::full) {
    const bool some = recipe.recompute_layers > 0;
    put("recompute-method", some ? "block" : "uniform");
    put("recompute-num-layers", std::to_string(some ? recipe.recompute_layers : 1));
  }
  truth("use-distributed-optimizer", recipe.zero == 1);
  if (recipe.zero > 1) {
    put("use-megatron-fsdp", {});
    put("data-parallel-sharding-strategy", recipe.zero == 2 ? "optim_grads" : "optim_grads_params");
  }
  if (recipe.zero > 0) count("num-distributed-optimizer-instances", recipe.copies, 1);
  truth("overlap-grad-reduce", recipe.overlap_reduce || (recipe.overlap_gather && recipe.zero > 0));
  truth("overlap-param-gather", recipe.overlap_gather && recipe.zero > 0);
  count("ddp-bucket-size", recipe.bucket, 0);
  truth("optimizer-cpu-offload", recipe.offload_optimizer);
  truth("bf16", recipe.precision == Precision::bf16 || is_narrow(recipe.precision));
  truth("fp16", recipe.precision == Precision::f16);
  if (recipe.precision == Precision::fp8) put("fp8-format", "hybrid");
  if (recipe.precision == Precision::nvfp4) put("fp4-format", "e2m1");
  count("num-layers", recipe.model.layers, 0);
  count("hidden-size", recipe.model.hidden, 0);
  count("ffn-hidden-size", recipe.model.inner, 0);
  count("num-attention-heads", recipe.model.heads, 0);
  if (recipe.model.key_heads > 0) {
    put("group-query-attention", {});
    put("num-query-groups", std::to_string(recipe.model.key_heads));
  }
  count("num-experts", recipe.model.experts, 0);
  count("padded-vocab-size", recipe.model.words, 0);
  return flags;
}

Written print_megatron(const Recipe& recipe) {
  Written written;
  if (recipe.devices > 0) {
    const std::int64_t usual = recipe.devices % kUsualRanks == 0 ? kUsualRanks : recipe.devices;
    const std::int64_t ranks = recipe.per_node > 0 ? recipe.per_node : usual;
    const std::string nodes =
        recipe.devices > ranks ? fmt::format(" --nnodes {}", recipe.devices / ranks) : std::string();
    written.text = fmt::format("torchrun --nproc-per-node {}{} pretrain_gpt.py", ranks, nodes);
  }
  Settings flags = settings_megatron(recipe);
  for (const auto& [flag, value] : recipe.others)
    if (flag.starts_with("--")) flags.push_back({flag.substr(2), value});
  if (!written.text.empty() && !flags.empty()) written.text += " \\\n";
  written.text += print(Syntax::flags, flags);
  if (flags.empty()) written.text += '\n';
  if (recipe.offload_parameters) written.lost.push_back("parameters in host memory");
  if (!recipe.schedule.empty()) written.lost.push_back(fmt::format("schedule {}", recipe.schedule));
  if (recipe.order != kUsualOrder && recipe.order != kPipelineInside)
    written.lost.push_back(fmt::format("rank order {}", recipe.order));
  return written;
}

}  // namespace weft::recipe
