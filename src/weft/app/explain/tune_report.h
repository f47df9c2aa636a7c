// weft/app/explain/tune_report.h -- the results of tuning, as text and as JSON.
//
// Included by app/explain and app/command only.
#pragma once
#include <string>

#include "weft/runtime/measure/tune_check.h"
#include "weft/runtime/measure/tune_group.h"

namespace weft::explain {

//   collective  ranks  transport  buffers  size    chosen           time     next              time
std::string tuned_text(const measure::Tuned& tuned);
std::string tuned_json(const measure::Tuned& tuned);

//   transport  ranks  buffers  times  median error  choices  median cost  mean cost  worst cost
// `tuned` holds the measurements made for the check.
std::string check_text(const measure::Tuned& tuned, const measure::TuneChecks& checks);
std::string check_json(const measure::Tuned& tuned, const measure::TuneChecks& checks);

}  // namespace weft::explain
