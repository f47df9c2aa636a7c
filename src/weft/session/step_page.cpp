#include "weft/session/step_page.h"

#include "weft/base/file.h"
#include "weft/sim/step/memory_curve.h"

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

Status write_step_page(const std::string& path, const explain::StepPage& page) {
  return write_file_atomically(path, print_html(page));
}

}  // namespace weft::session
