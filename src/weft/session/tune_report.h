// weft/session/tune_report.h -- what tuning found, for people and for programs.
//
// Included by the files of session/ only.
#pragma once
#include <string>

#include "weft/session/tune_check.h"
#include "weft/session/tune_group.h"

namespace weft::session {

//   collective  ranks  transport  buffers  size    chosen           time     next              time
std::string tuned_text(const Tuned& tuned);
std::string tuned_json(const Tuned& tuned);

//   transport  ranks  buffers  times  median error  choices  median cost  mean cost  worst cost
// `tuned` is what was measured to check.
std::string check_text(const Tuned& tuned, const TuneChecks& checks);
std::string check_json(const Tuned& tuned, const TuneChecks& checks);

}  // namespace weft::session
