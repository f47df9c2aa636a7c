// Neighbours of a recipe, and differences between two recipes.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/translate/recipe/improve.h"

namespace weft::recipe {
namespace {

using DegreeField = std::int64_t Recipe::*;

std::string zero_name(int zero) { return zero == 0 ? "none" : fmt::format("ZeRO {}", zero); }

// "7, 14 x 8, 7"
std::string describe_layers(const std::vector<std::int64_t>& stages) {
  std::vector<std::string> runs;
  for (std::size_t first = 0, next = 0; first < stages.size(); first = next) {
    for (next = first + 1; next < stages.size() && stages[next] == stages[first];) ++next;
    runs.push_back(next - first > 1 ? fmt::format("{} x {}", next - first, stages[first])
                                    : fmt::format("{}", stages[first]));
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

}  // namespace

std::string describe(const Recipe& recipe) {
  std::vector<std::string> words;
  const auto degree = [&](std::string_view what, std::int64_t size) {
    if (size > 1) words.push_back(fmt::format("{} {}", what, size));
  };
  degree("tensor", recipe.tensor);
  if (recipe.sequence_parallel) words.emplace_back("sequence parallel");
  degree("pipeline", recipe.pipeline);
  degree("virtual stages", recipe.virtual_stages);
  if (!recipe.stage_layers.empty())
    words.push_back(fmt::format("{} layers per stage", describe_layers(recipe.stage_layers)));
  degree("context", recipe.context);
  degree("expert", recipe.expert);
  words.push_back(fmt::format("data {}", std::max<std::int64_t>(recipe.data_degree(), 1)));
  if (recipe.zero > 0)
    words.push_back(recipe.copies > 1 ? fmt::format("ZeRO {} in {} copies", recipe.zero, recipe.copies)
                                      : fmt::format("ZeRO {}", recipe.zero));
  if (recipe.micro_batch > 0)
    words.push_back(fmt::format("micro-batch {} ({} per step)", recipe.micro_batch, recipe.micro_batches()));
  if (recipe.recompute != Recompute::none)
    words.push_back(fmt::format("{} recomputation{}", name(recipe.recompute),
                                recipe.recompute_layers > 0
                                    ? fmt::format(" of {} layers per stage", recipe.recompute_layers)
                                    : std::string()));
  if (recipe.offload_optimizer)
    words.emplace_back(recipe.offload_parameters ? "optimizer and parameters on the host"
                                                 : "optimizer on the host");
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<Change> changes(const Recipe& from, const Recipe& to) {
  std::vector<Change> made;
  const auto add = [&](std::string_view what, const std::string& a, const std::string& b) {
    if (a != b) made.push_back({std::string(what), a, b});
  };
  const auto count = [&](std::string_view what, std::int64_t a, std::int64_t b) {
    add(what, std::to_string(a), std::to_string(b));
  };
  const auto truth = [](bool is) { return std::string(is ? "yes" : "no"); };
  count("tensor", from.tensor, to.tensor);
  add("sequence parallel", truth(from.sequence_parallel), truth(to.sequence_parallel));
  count("pipeline", from.pipeline, to.pipeline);
  count("virtual stages", from.virtual_stages, to.virtual_stages);
  const auto schedule = [](const Recipe& recipe) {
    return !recipe.schedule.empty()    ? recipe.schedule
           : recipe.virtual_stages > 1 ? std::string("interleaved_one_f_one_b")
                                       : std::string("one_f_one_b");
  };
  if (!from.schedule.empty() || !to.schedule.empty()) add("schedule", schedule(from), schedule(to));
  const auto layers = [](const Recipe& recipe) {
    return recipe.stage_layers.empty() ? std::string("equal") : describe_layers(recipe.stage_layers);
  };
  add("layers per stage", layers(from), layers(to));
  count("context", from.context, to.context);
  count("expert", from.expert, to.expert);
  count("data", from.data_degree(), to.data_degree());
  add("sharded", zero_name(from.zero), zero_name(to.zero));
  count("copies", from.copies, to.copies);
  count("micro-batch", from.micro_batch, to.micro_batch);
  add("recomputation", std::string(name(from.recompute)), std::string(name(to.recompute)));
  count("recomputed layers", from.recompute_layers, to.recompute_layers);
  add("optimizer on the host", truth(from.offload_optimizer), truth(to.offload_optimizer));
  add("sums overlap", truth(from.overlap_reduce), truth(to.overlap_reduce));
  add("rank order", from.order, to.order);
  return made;
}

std::vector<Recipe> neighbours(const Recipe& recipe) {
  std::vector<Recipe> found;
  const auto add = [&](Recipe changed) {
    changed.data = 0;  // recomputed from the other degrees
    if (changed.pipeline * changed.virtual_stages != recipe.pipeline * recipe.virtual_stages)
      changed.stage_layers.clear();
    if (changed.data_degree() == 0 || !check(changed, recipe.devices).ok()) return;
    changed.data = changed.data_degree();
    if (!same_plan(changed, recipe)) found.push_back(std::move(changed));
  };
  // Shift devices from one degree to another; data gets the rest.
  constexpr DegreeField kDegrees[] = {&Recipe::tensor, &Recipe::pipeline, &Recipe::context};
  for (const DegreeField less : kDegrees)
    if (recipe.*less % 2 == 0) {
      Recipe changed = recipe;
      changed.*less /= 2;
      if (changed.pipeline == 1) changed.virtual_stages = 1, changed.schedule.clear();
      if (changed.tensor == 1) changed.sequence_parallel = false;
      add(changed);
    }
  for (const DegreeField more : kDegrees) {
    Recipe changed = recipe;
    changed.*more *= 2;
    if (changed.tensor > 1 && recipe.tensor == 1) changed.sequence_parallel = true;
    add(changed);
    for (const DegreeField less : kDegrees) {
      if (less == more || recipe.*less % 2 != 0) continue;
      Recipe swapped = changed;
      swapped.*less /= 2;
      if (swapped.pipeline == 1) swapped.virtual_stages = 1, swapped.schedule.clear();
      if (swapped.tensor == 1) swapped.sequence_parallel = false;
      add(swapped);
    }
  }
  for (const DegreeField field : {&Recipe::micro_batch, &Recipe::virtual_stages, &Recipe::expert}) {
    Recipe changed = recipe;
    changed.*field *= 2;
    add(changed);
    if (recipe.*field % 2 != 0) continue;
    changed.*field = recipe.*field / 2;
    add(changed);
  }
  if (recipe.pipeline > 1) {
    Recipe changed = recipe;
    changed.schedule = recipe.schedule.empty() ? std::string(kZeroBubble) : std::string();
    changed.virtual_stages = 2;
    add(changed);
  }
  for (int zero = 0; zero <= 3; ++zero) {
    Recipe changed = recipe;
    changed.zero = zero;
    if (zero == 0) changed.copies = 1;
    add(changed);
  }
  if (recipe.tensor > 1) {
    Recipe changed = recipe;
    changed.sequence_parallel = !recipe.sequence_parallel;
    add(changed);
  }
  for (const Recompute what : {Recompute::none, Recompute::selective, Recompute::full}) {
    Recipe changed = recipe;
    changed.recompute = what;
    changed.recompute_layers = 0;
    add(changed);
  }
  if (!recipe.offload_parameters) {
    Recipe changed = recipe;
    changed.offload_optimizer = !recipe.offload_optimizer;
    add(changed);
  }
  if (!recipe.overlap_reduce) {
    Recipe changed = recipe;
    changed.overlap_reduce = true;
    add(changed);
  }
  if (recipe.pipeline > 1 && recipe.data_degree() > 1) {
    Recipe changed = recipe;
    changed.order = recipe.order == kUsualOrder ? kPipelineInside : kUsualOrder;
    add(changed);
  }
  return found;
}

}  // namespace weft::recipe
