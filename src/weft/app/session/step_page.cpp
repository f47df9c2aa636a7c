#include "weft/app/session/step_page.h"

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/predict/sim/step/memory_curve.h"

namespace weft::session {

void add_measured(explain::StepPage& page, const DistributedMeasurement& measured) {
  for (std::size_t rank = 0; rank < measured.ranks.size(); ++rank) {
    const DistributedMeasurement::RankRun& run = measured.ranks[rank];
    page.timelines.push_back({.ranks = {static_cast<std::int32_t>(rank)},
                              .measured = true,
                              .program = run.program,
                              .timeline = run.timeline,
                              .memory = sim::memory_curve(*run.program, run.timeline.tasks)});
  }
}

void add_measured(explain::StepPage& page, const PipelineMeasurement& measured) {
  for (const PipelineRank& rank : measured.ranks) {
    explain::PageTimeline timeline{
        .ranks = {rank.rank},
        .place = measured.step.stages.size() > 1 ? fmt::format("stage {}", rank.stage) : std::string(),
        .measured = true,
        .program = rank.program,
        .timeline = rank.timeline,
        .memory = sim::memory_curve(*rank.program, rank.timeline.tasks)};
    for (std::size_t i = 0; i < rank.passes.size(); ++i)
      timeline.passes.push_back({rank.passes[i], rank.slots[i].begin, rank.slots[i].end});
    page.timelines.push_back(std::move(timeline));
  }
}

Status write_step_page(const std::string& path, const explain::StepPage& page) {
  return write_file_atomically(path, print_html(page));
}

}  // namespace weft::session
