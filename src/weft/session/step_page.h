// weft/session/step_page.h -- EXPLAIN (PAGE 'step.html'): the plan and its timelines, as a page in a file.
//
// Included by the files of session/ only.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/explain/step_page.h"
#include "weft/session/measure_distributed.h"
#include "weft/session/measure_in_time.h"

namespace weft::session {

// Adds each rank's timeline of the step that was measured.
void add_measured(explain::StepPage& page, const DistributedMeasurement& measured);

// The same of steps that are cut in time, with their passes.
void add_measured(explain::StepPage& page, const MeasurementInTime& measured);

Status write_step_page(const std::string& path, const explain::StepPage& page);

}  // namespace weft::session
