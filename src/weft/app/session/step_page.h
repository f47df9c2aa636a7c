// weft/app/session/step_page.h -- EXPLAIN (PAGE 'step.html'): the plan and its timelines as an HTML page.
//
// Included by app/session and app/command only.
#pragma once
#include <string>

#include "weft/app/explain/step_page.h"
#include "weft/app/session/measure_distributed.h"
#include "weft/app/session/measure_pipeline.h"
#include "weft/base/result.h"

namespace weft::session {

// Adds each rank's timeline of the measured step.
void add_measured(explain::StepPage& page, const DistributedMeasurement& measured);

// The same for plans with stages or micro-batches, with their passes.
void add_measured(explain::StepPage& page, const PipelineMeasurement& measured);

Status write_step_page(const std::string& path, const explain::StepPage& page);

}  // namespace weft::session
