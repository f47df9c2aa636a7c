// weft/app/session/explain_one_device.h -- the files that EXPLAIN writes for a plan on one device.
//
// A single device is treated as a mesh of one rank, so that PAGE, TIMELINE and CHAKRA work as on
// several.
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

// Steps measured on this machine.
struct MeasuredOneDevice {
  explain::Measured step;
  std::shared_ptr<const program::Program> program;
  program::Timeline timeline;  // of the last step
};

Status write_one_device_files(const Prepared& prepared, const explain::Report& report,
                              const search::Choice& choice, const std::optional<MeasuredOneDevice>& measured,
                              const ExplainOptions& options);

}  // namespace weft::session
