// A report as an HTML page: lines as facts and remarks, sections as tables, predicted timelines.
#include <fmt/format.h>

#include "weft/app/explain/report.h"
#include "weft/app/explain/step_page.h"
#include "weft/parallel/pipeline/pipelined_plan.h"

namespace weft::explain {
namespace {

// One timeline per class of ranks.
std::vector<PageTimeline> timelines_of(const sim::Prediction& prediction) {
  std::vector<PageTimeline> timelines;
  for (const sim::RankClass& ranks : prediction.classes)
    timelines.push_back(
        {.ranks = ranks.ranks, .program = ranks.program, .timeline = ranks.timeline, .memory = ranks.memory});
  for (const sim::CriticalTask& task : prediction.critical)
    if (task.rank_class < timelines.size()) timelines[task.rank_class].critical.push_back(task.task);
  return timelines;
}

// One timeline per stage, with its passes.
std::vector<PageTimeline> timelines_of(const search::ChosenPipeline& choice) {
  const search::PipelineEstimate& priced = choice.priced;
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
  const plan::Mesh& mesh = choice.distribution.mesh;
  const std::int32_t ranks = mesh.axes.empty() ? 1 : mesh.ranks();
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    timelines[static_cast<std::size_t>(pipeline::stage_of(choice.distribution, rank))].ranks.push_back(rank);
  return timelines;
}

}  // namespace

StepPage step_page(const Report& report) {
  StepPage page;
  page.title = fmt::format("{} {} ON {}", report.task, report.model, report.cluster.name);
  for (const auto& [name, size] : report.sizes)
    page.subtitle += fmt::format("{}{} = {}", page.subtitle.empty() ? "" : ", ", name, size);
  for (const auto& [name, value] : report.settings)
    page.subtitle += fmt::format("{}{} {}", page.subtitle.empty() ? "" : ", ", name, value);
  const StepFacts facts = step_of(report);
  for (const ReportLine& line : report_lines()) {
    LineText text = line.text(report, facts);
    if (text.value.empty()) continue;
    if (line.after_others)
      page.remarks.push_back(
          fmt::format("{}: {}{}{}", line.label, text.value, text.note.empty() ? "" : " · ", text.note));
    else
      page.facts.push_back({std::string(line.label), std::move(text.value), std::move(text.note)});
  }
  page.tables = sections_of(report);
  if (report.pipeline)
    page.timelines = timelines_of(*report.pipeline->choice);
  else if (report.prediction != nullptr)
    page.timelines = timelines_of(*report.prediction);
  return page;
}

}  // namespace weft::explain
