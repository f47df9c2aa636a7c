// weft/app/session/explain_alone.h -- the files that EXPLAIN writes of a plan for one device.
//
// A device by itself is a mesh of one rank, so that PAGE, TIMELINE and CHAKRA are what they are of many.
//
// Included by app/session and app/command only.
#pragma once
#include <memory>
#include <optional>

#include "weft/app/explain/report.h"
#include "weft/app/session/explain_distributed.h"
#include "weft/planner/search/optimize.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::session {

// Steps that ran here.
struct MeasuredAlone {
  explain::Measured step;
  std::shared_ptr<const program::Program> program;
  program::Timeline timeline;  // of the last of them
};

Status write_files_alone(const Prepared& prepared, const explain::Report& report,
                         const search::Choice& choice, const std::optional<MeasuredAlone>& measured,
                         const ExplainOptions& options);

}  // namespace weft::session
