// Prints torchtitan's ParallelismConfig and TrainingConfig as dictionaries, followed by config().
#include "weft/translate/recipe/titan_config.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/embedded.h"
#include "weft/translate/recipe/python_text.h"

namespace weft {
std::span<const EmbeddedFile> embedded_titan_config();  // src/weft/translate/recipe/titan_config.py
}  // namespace weft

namespace weft::recipe {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

// A schedule of torchtitan that has the same stages on each rank. The CSV gives the order of passes.
std::string_view schedule_on(pipeline::Route route) {
  switch (route) {
    case pipeline::Route::loop: return "Interleaved1F1B";
    case pipeline::Route::v: return "ZBVZeroBubble";
    default: return "1F1B";
  }
}

// As Python source. Dictionaries of mixed values are printed from these.
std::string print_values(const Values& values) {
  std::string text = "{\n";
  for (const auto& [key, value] : values) text += fmt::format("    {}: {},\n", python_quoted(key), value);
  return text + "}";
}

Values training(const Recipe& recipe) {
  Values made;
  if (recipe.sequence > 0) {
    made.emplace_back("max_context_length", fmt::format("{}", recipe.sequence));
    if (recipe.micro_batch > 0)
      made.emplace_back("num_tokens_per_microbatch_per_dp_rank",
                        fmt::format("{}", recipe.micro_batch * recipe.sequence));
    if (recipe.global_batch > 0)
      made.emplace_back("num_tokens_per_train_step",
                        fmt::format("{}", recipe.global_batch * recipe.sequence));
  }
  made.emplace_back("mixed_precision_param",
                    python_quoted(recipe.precision == Precision::f32 ? "float32" : "bfloat16"));
  if (recipe.offload_optimizer && recipe.zero > 0) made.emplace_back("enable_cpu_offload", "True");
  // CUDA graphs support neither pipelines nor experts on several ranks.
  if (recipe.pipeline > 1 || recipe.expert > 1) made.emplace_back("disable_cuda_graphs", "True");
  return made;
}

Values parallelism(const TorchPlan& plan, const Recipe& recipe) {
  Values made;
  const auto count = [&](std::string key, std::int64_t value) {
    made.emplace_back(std::move(key), fmt::format("{}", value));
  };
  const std::int64_t data = std::max<std::int64_t>(recipe.data_degree(), 1);
  count("data_parallel_replicate_degree", recipe.zero == 0 ? data : recipe.copies);
  count("data_parallel_shard_degree", recipe.zero == 0 ? 1 : data / recipe.copies);
  if (recipe.zero > 0)
    made.emplace_back("fsdp_reshard_after_forward", python_quoted(recipe.zero == 3 ? "always" : "never"));
  count("tensor_parallel_degree", recipe.tensor);
  if (recipe.tensor > 1) made.emplace_back("enable_sequence_parallel", truth(recipe.sequence_parallel));
  count("context_parallel_degree", recipe.context);
  count("expert_parallel_degree", recipe.expert);
  count("pipeline_parallel_degree", recipe.pipeline);
  if (recipe.pipeline > 1) {
    count("num_pp_microbatches", plan.micro_batches);
    made.emplace_back("pipeline_parallel_schedule", python_quoted(schedule_on(plan.route)));
  }
  return made;
}

// The modules of each stage, by torchtitan's names.
std::string print_stages(const TorchPlan& plan) {
  std::string text = "[\n";
  std::int64_t layer = 0;
  for (std::size_t stage = 0; stage < plan.stage_layers.size(); ++stage) {
    std::vector<std::string> modules;
    if (stage == 0) modules.push_back(python_quoted("tok_embeddings"));
    for (std::int64_t i = 0; i < plan.stage_layers[stage]; ++i)
      modules.push_back(python_quoted(fmt::format("layers.{}", layer++)));
    if (stage + 1 == plan.stage_layers.size())
      for (const std::string_view module : {"norm", "lm_head"}) modules.push_back(python_quoted(module));
    text += fmt::format("    [{}],\n", fmt::join(modules, ", "));
  }
  return text + "]";
}

std::vector<std::string> lost_by(const TorchPlan& plan, const GatheredRecipe& gathered) {
  const Recipe& recipe = gathered.recipe;
  std::vector<std::string> lost = plan.stages_lost;
  // The file has the schedule's CSV, whatever its name.
  std::ranges::copy_if(gathered.lost, std::back_inserter(lost),
                       [](const std::string& one) { return !one.starts_with("schedule "); });
  const auto lose = [&](bool is, std::string what) {
    if (is) lost.push_back(std::move(what));
  };
  const auto last = static_cast<std::int32_t>(plan.stage_layers.size()) - 1;
  for (const auto& [tensor, stage] : plan.stage_of)
    lose(stage != 0 && stage != last,
         fmt::format("{} on stage {}: the first stage has the embeddings, the last one norm and head", tensor,
                     stage));
  lose(recipe.zero == 1, "ZeRO 1: gradients are sharded too");
  lose(recipe.offload_optimizer, recipe.zero > 0
                                     ? "optimizer states in host memory: parameters and gradients, too"
                                     : "optimizer states in host memory: only sharded ones can be");
  lose(recipe.precision == Precision::f16, "f16");
  lose(is_narrow(recipe.precision), fmt::format("{}: set by a model converter", name(recipe.precision)));
  lose(recipe.order != kUsualOrder, fmt::format("rank order {}", recipe.order));
  lose(recipe.sequence == 0, "tokens per step: the model has no sequence");
  return lost;
}

}  // namespace

Written print_titan_config(const TorchPlan& plan, const GatheredRecipe& gathered) {
  const Recipe& recipe = gathered.recipe;
  Written written;
  written.lost = lost_by(plan, gathered);
  std::string& text = written.text;
  text = fmt::format("\"\"\"A plan of {} for torchtitan: {}\n\n", in_docstring(plan.model),
                     in_docstring(plan.distribution));
  text += "    torchrun .. -m torchtitan.train --module weft_plan --config config\n\n";
  text += "For torchtitan after 0.2.2; FORMAT torchtitan_toml is for older ones.\n";
  if (!written.lost.empty())
    text += fmt::format("Not in this file: {}.\n",
                        in_docstring(fmt::format("{}", fmt::join(written.lost, "; "))));
  text += "\"\"\"\n\n";
  text +=
      "# The configuration of the model, such as \"torchtitan.models.llama3.config_registry:llama3_8b\".\n";
  text += "MODEL = \"\"\n";
  text += fmt::format("LAYERS = {}\nTRAINING = {}\nPARALLELISM = {}\nRECOMPUTE = {}\n", plan.layers,
                      print_values(training(recipe)), print_values(parallelism(plan, recipe)),
                      python_quoted(name(recipe.recompute)));
  if (recipe.pipeline > 1) {
    text += fmt::format("STAGES = {}\n", print_stages(plan));
    text += fmt::format(
        "# One row per rank: forward (F), backward of activations (I), of parameters (W), of both (B).\n"
        "SCHEDULE = \"\"\"\n{}\"\"\"\n",
        plan.schedule);
  }
  text += embedded_titan_config().front().text;
  return written;
}

}  // namespace weft::recipe
