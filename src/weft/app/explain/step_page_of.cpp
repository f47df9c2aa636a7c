// What an explanation of a plan for many devices puts on a page.
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/step_page.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

std::string percent(double part) { return fmt::format("{:.3g} %", 100 * part); }

// "12 % more than predicted", "3.4x what was predicted".
std::string against(double measured, double predicted) {
  if (!(predicted > 0)) return "measured";
  const double ratio = measured / predicted;
  if (ratio >= 2) return fmt::format("{:.3g}x what was predicted", ratio);
  return fmt::format("{:.0f} % {} than predicted", 100 * std::abs(ratio - 1), ratio < 1 ? "less" : "more");
}

std::string subtitle_of(const DistributedExplanation& explanation) {
  std::string text;
  for (const auto& [name, size] : explanation.sizes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, size);
  for (const auto& [name, value] : explanation.settings)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::vector<PageFact> facts_of(const DistributedExplanation& explanation) {
  const sim::Prediction& prediction = explanation.choice->chosen.prediction;
  std::vector<PageFact> facts;
  facts.push_back({"a step, predicted", print_seconds(prediction.seconds),
                   fmt::format("computing {}, communicating {}", print_seconds(prediction.compute_seconds),
                               print_seconds(prediction.communication_seconds))});
  if (const auto& measured = explanation.measured)
    facts.push_back({"a step, measured", print_seconds(measured->seconds),
                     fmt::format("{}; median of {}, {}", against(measured->seconds, prediction.seconds),
                                 measured->steps, measured->ranks)});
  facts.push_back(
      {"exposed communication", print_seconds(prediction.exposed_communication_seconds),
       explanation.measured
           ? fmt::format("measured {}", print_seconds(explanation.measured->exposed_communication_seconds))
           : "while nothing is computed"});
  facts.push_back(
      {"of the peak rate", percent(explanation.utilization(prediction.seconds)),
       explanation.measured
           ? fmt::format("measured {}", percent(explanation.utilization(explanation.measured->seconds)))
           : std::string()});
  facts.push_back({"memory a rank", print_bytes(prediction.peak_bytes), memory_kinds(prediction.memory)});
  return facts;
}

PageTable mesh_of(const distribute::Distribution& distribution,
                  const std::vector<sim::AxisTraffic>& traffic) {
  PageTable table{"Distribution by mesh axis",
                  {{"mesh axis"},
                   {"ranks", Align::right},
                   {"slices"},
                   {"shards"},
                   {"a rank sends", Align::right},
                   {"busy", Align::right}}};
  for (std::size_t a = 0; a < distribution.axes.size(); ++a) {
    const plan::MeshAxis& axis = distribution.mesh.axes[a];
    const distribute::AxisUse& use = distribution.axes[a];
    std::string sent, busy;
    for (const sim::AxisTraffic& moved : traffic)
      if (moved.axis == axis.name && moved.bytes > 0)
        sent = print_bytes(moved.bytes), busy = print_seconds(moved.busy_seconds);
    table.rows.push_back({axis.name, fmt::format("{}", axis.ranks),
                          use.slice.empty() ? "nothing" : fmt::format("{}", fmt::join(use.slice, ", ")),
                          std::string(distribute::name(use.shard)), sent, busy});
  }
  return table;
}

PageTable alternatives_of(const DistributedExplanation& explanation) {
  PageTable table{"Plans that were compared",
                  {{"plan"},
                   {"step", Align::right},
                   {"of peak", Align::right},
                   {"memory", Align::right},
                   {"exposed", Align::right},
                   {"distribution"},
                   {"why not"}}};
  const auto add = [&](std::string name, const search::Evaluation& evaluation,
                       const distribute::Distribution& distribution, std::string why) {
    table.rows.push_back(
        {std::move(name), print_seconds(evaluation.seconds),
         percent(explanation.utilization(evaluation.seconds)), print_bytes(evaluation.peak_bytes),
         print_seconds(evaluation.exposed_communication_seconds), print(distribution), std::move(why)});
  };
  add("chosen", explanation.choice->chosen.evaluation(), explanation.choice->distribution, "");
  table.marked = 0;
  for (const search::Alternative& other : explanation.choice->alternatives)
    add(other.name, other.evaluation, other.distribution, other.why_not);
  return table;
}

std::vector<std::string> remarks_of(const DistributedExplanation& explanation) {
  const search::DistributionChoice& choice = *explanation.choice;
  std::vector<std::string> remarks;
  if (const std::string& bound = choice.chosen.prediction.bound; !bound.empty())
    remarks.push_back("bound by " + bound);
  if (choice.lower_bound_seconds > 0)
    remarks.push_back(fmt::format("no plan takes less than {}: {}", print_seconds(choice.lower_bound_seconds),
                                  choice.lower_bound_why));
  if (choice.outcome.estimates > 0)
    remarks.push_back(fmt::format("planned in {}: {} distributions on {} meshes; stopped: {}",
                                  print_seconds(explanation.planning_seconds), choice.outcome.estimates,
                                  choice.outcome.meshes, search::name(choice.outcome.ended)));
  for (const distribute::Exception& exception : choice.distribution.exceptions)
    remarks.push_back(
        exception.index.empty()
            ? fmt::format("{} is replicated across {}", exception.tensor, exception.axis)
            : fmt::format("{} of {} is sliced across {}", exception.index, exception.tensor, exception.axis));
  if (!explanation.proof.empty()) remarks.push_back(explanation.proof);
  if (!explanation.hints.empty())
    remarks.push_back(fmt::format("hints: {}", fmt::join(explanation.hints, ", ")));
  return remarks;
}

}  // namespace

StepPage step_page(const DistributedExplanation& explanation) {
  const sim::Prediction& prediction = explanation.choice->chosen.prediction;
  StepPage page;
  page.title = fmt::format("{} {} ON {}", explanation.task, explanation.model, explanation.cluster.name);
  page.subtitle = subtitle_of(explanation);
  page.facts = facts_of(explanation);
  page.remarks = remarks_of(explanation);
  page.tables = {mesh_of(explanation.choice->distribution, prediction.traffic), alternatives_of(explanation)};
  for (const sim::RankClass& ranks : prediction.classes)
    page.timelines.push_back(
        {.ranks = ranks.ranks, .program = ranks.program, .timeline = ranks.timeline, .memory = ranks.memory});
  for (const sim::CriticalTask& task : prediction.critical)
    if (task.rank_class < page.timelines.size())
      page.timelines[task.rank_class].critical.push_back(task.task);
  return page;
}

}  // namespace weft::explain
