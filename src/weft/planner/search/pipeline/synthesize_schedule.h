// weft/planner/search/pipeline/synthesize_schedule.h -- synthesize a schedule for the stages of a plan.
//
//   F 20 18 18 31   B 21 19 19 30   W ..   memory for 5 micro-batches       synthesized_f20_18x2_31_b..
//
// Shipped schedules suit equal stages and hold a fixed number of micro-batches. If stages differ,
// or have memory for a number in between, synthesis (pipeline/synthesize.h) finds shorter
// schedules.
#pragma once
#include <optional>

#include "weft/planner/search/pipeline/choose_pipeline.h"

namespace weft::search {

// The same plan with a synthesized schedule, with one or two chunks per stage, if that is worth it.
std::optional<ChosenPipeline> with_synthesized_schedule(const PipelineProblem& problem,
                                                        const ChosenPipeline& found);

}  // namespace weft::search
