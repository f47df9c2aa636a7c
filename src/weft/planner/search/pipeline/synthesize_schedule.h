// weft/planner/search/pipeline/synthesize_schedule.h -- a schedule made for the stages of a plan that was found.
//
//   F 20 18 18 31   B 21 19 19 30   W ..   memory for 5 micro-batches       synthesized_f20_18x2_31_b..
//
// Schedules that ship suit stages that are alike, and hold as many micro-batches as their text says. Where stages differ,
// or have room for a number between, synthesis (pipeline/synthesize.h) finds orders that wait less.
#pragma once
#include <optional>

#include "weft/planner/search/pipeline/choose_in_time.h"

namespace weft::search {

// The same plan by such a schedule, with one chunk per stage or two, where that is worth it.
std::optional<ChosenInTime> with_synthesized_schedule(const InTimeProblem& problem,
                                                      const ChosenInTime& found);

}  // namespace weft::search
