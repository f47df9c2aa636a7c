// What an explanation of a plan in time puts on a page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/explain/in_time.h"
#include "weft/app/explain/in_time_words.h"
#include "weft/app/explain/predicted_step.h"
#include "weft/base/units.h"
#include "weft/parallel/pipeline/in_time.h"

namespace weft::explain {
namespace {

std::string one_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<PageFact> facts_in_time(const InTimeExplanation& explanation) {
  const search::PricedInTime& priced = explanation.choice->priced;
  const auto& measured = explanation.measured;
  std::vector<PageFact> facts;
  facts.push_back({"a step, predicted", print_seconds(priced.seconds),
                   fmt::format("sums of gradients and update {}", print_seconds(priced.updating))});
  if (measured)
    facts.push_back({"a step, measured", print_seconds(measured->seconds),
                     fmt::format("median of {}, {}", measured->steps, measured->ranks)});
  facts.push_back(
      {"bubble", rounded_percent(priced.bubble_rate()),
       measured ? fmt::format("measured {}", rounded_percent(measured->bubble_rate())) : std::string()});
  facts.push_back({"of the peak rate", rounded_percent(explanation.about.utilization(priced.seconds)),
                   measured ? fmt::format("measured {}",
                                          rounded_percent(explanation.about.utilization(measured->seconds)))
                            : std::string()});
  facts.push_back(
      {"memory a rank", print_bytes(priced.peak_bytes), memory_kinds(priced.stages[priced.fullest].memory)});
  return facts;
}

PageTable stages_of(const InTimeExplanation& explanation) {
  PageTable table{"Stages",
                  {{"stage", Align::right},
                   {"from .. to"},
                   {"F", Align::right},
                   {"B", Align::right},
                   {"W", Align::right},
                   {"update", Align::right},
                   {"idle", Align::right},
                   {"in flight", Align::right},
                   {"memory", Align::right}}};
  const search::PricedInTime& priced = explanation.choice->priced;
  for (std::size_t s = 0; s < priced.stages.size(); ++s) {
    const search::StageCost& stage = priced.stages[s];
    table.rows.push_back({fmt::format("{}", s), parts_of(explanation, stage), print_seconds(stage.forward),
                          print_seconds(stage.backward), print_seconds(stage.weight),
                          print_seconds(stage.update), rounded_percent(stage.idle / priced.seconds),
                          fmt::format("{:.4g}", stage.in_flight), print_bytes(stage.memory.total())});
    if (!explanation.measured) continue;
    const MeasuredInTime::Stage& took = explanation.measured->stages[s];
    table.rows.push_back({"", "measured", print_seconds(took.forward), print_seconds(took.backward),
                          print_seconds(took.weight), print_seconds(took.update),
                          rounded_percent(took.idle / explanation.measured->seconds)});
  }
  return table;
}

PageTable plans_of(const InTimeExplanation& explanation) {
  PageTable table{"Plans that were compared",
                  {{"plan"},
                   {"step", Align::right},
                   {"memory", Align::right},
                   {"bubble", Align::right},
                   {"distribution"},
                   {"why not"}}};
  const auto add = [&](std::string name, const search::PlanInTime& plan, std::string why) {
    table.rows.push_back({std::move(name), print_seconds(plan.priced.seconds),
                          print_bytes(plan.priced.peak_bytes), rounded_percent(plan.priced.bubble_rate()),
                          print(plan.distribution), std::move(why)});
  };
  add("chosen", *explanation.choice, "");
  table.marked = 0;
  if (explanation.choice->megatron) add("Megatron 3D", *explanation.choice->megatron, "");
  for (const search::Alternative& other : explanation.without_stages)
    table.rows.push_back({other.name, print_seconds(other.evaluation.seconds),
                          print_bytes(other.evaluation.peak_bytes), "", print(other.distribution),
                          other.why_not});
  return table;
}

// The predicted passes of each stage.
std::vector<PageTimeline> stage_timelines(const InTimeExplanation& explanation) {
  const search::PricedInTime& priced = explanation.choice->priced;
  const distribute::Distribution& distribution = explanation.choice->distribution;
  const auto nothing = std::make_shared<const program::Program>();
  std::vector<PageTimeline> timelines;
  for (std::size_t s = 0; s < priced.stages.size(); ++s) {
    PageTimeline& timeline = timelines.emplace_back();
    if (priced.stages.size() > 1) timeline.place = fmt::format("stage {}", s);
    timeline.program = nothing;
    timeline.timeline.seconds = priced.seconds;
    for (std::size_t i = 0; i < priced.schedule.orders[s].size(); ++i)
      timeline.passes.push_back(
          {priced.schedule.orders[s][i], priced.price.slots[s][i].begin, priced.price.slots[s][i].end});
    const double passed = timeline.passes.empty() ? 0 : timeline.passes.back().end;
    timeline.passes.push_back({{}, passed, passed + priced.stages[s].update, /*updates=*/true});
  }
  const std::int32_t ranks = distribution.mesh.axes.empty() ? 1 : distribution.mesh.ranks();
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    timelines[static_cast<std::size_t>(pipeline::stage_of(distribution, rank))].ranks.push_back(rank);
  return timelines;
}

}  // namespace

StepPage step_page(const InTimeExplanation& explanation) {
  const DistributedExplanation& about = explanation.about;
  StepPage page;
  page.title = fmt::format("{} {} ON {}", about.task, about.model, about.cluster.name);
  for (const auto& [name, size] : about.sizes)
    page.subtitle += fmt::format("{}{} = {}", page.subtitle.empty() ? "" : ", ", name, size);
  for (const auto& [name, value] : about.settings)
    page.subtitle += fmt::format("{}{} {}", page.subtitle.empty() ? "" : ", ", name, value);
  page.facts = facts_in_time(explanation);
  page.remarks = {one_line(schedule_line(explanation)), one_line(bubble_line(explanation.choice->priced))};
  if (!about.proof.empty()) page.remarks.push_back(about.proof);
  if (!about.hints.empty()) page.remarks.push_back(fmt::format("hints: {}", fmt::join(about.hints, ", ")));
  page.tables = {stages_of(explanation), plans_of(explanation)};
  page.timelines = stage_timelines(explanation);
  return page;
}

}  // namespace weft::explain
