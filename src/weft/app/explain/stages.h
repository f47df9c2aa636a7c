// weft/app/explain/stages.h -- what each stage of the optimizer left of a plan.
//
//   stage                  nodes    a step
//   rewrite                  214  31.2 ms at best   no rule makes it cheaper
//   distribute               231   8.4 ms           rank=4: slice b
//   rewrite communication  same as above            no rule pays
#pragma once
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "weft/app/explain/lines.h"
#include "weft/planner/search/optimize.h"

namespace weft::explain {

// EXPLAIN (STAGES): the same with what a rank needs after each, how many candidates it tried, and what finding it took.
struct StagesExplanation {
  std::string headline;
  std::span<const search::StageReport> stages;
  double planning_seconds = 0;  // of all, what lies between stages counted
  std::size_t width = kUsualWidth;
};
std::string print_text(const StagesExplanation& explanation);
std::string print_json(const StagesExplanation& explanation);  // one line

std::string stage_table(std::span<const search::StageReport> reports, std::size_t width);
nlohmann::ordered_json stages_json(std::span<const search::StageReport> reports);

// A rule a step.
nlohmann::ordered_json trail_json(std::span<const search::Step> trail);

}  // namespace weft::explain
