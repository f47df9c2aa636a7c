// weft/app/explain/stages.h -- a plan after each planner stage, and the rules that fired.
//
//   stage                      step   memory  tried   spent
//   rewrite                 31.2 ms                    2 ms  no rule makes it cheaper
//   distribute               8.4 ms  1.2 GiB    391   71 ms  rank=4: slice b
#pragma once
#include <span>

#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/planner/search/optimize.h"

namespace weft::explain {

// One row per stage that ran or was switched off. `timed`: include the seconds each took.
Section stages_section(std::span<const search::StageReport> reports, bool timed);
nlohmann::ordered_json stages_json(std::span<const search::StageReport> reports);

// One row per rewrite: the rule, what it saved, what it replaced.
Section trail_section(std::span<const search::Step> trail);
nlohmann::ordered_json trail_json(std::span<const search::Step> trail);

}  // namespace weft::explain
