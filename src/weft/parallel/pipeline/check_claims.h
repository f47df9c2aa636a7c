// weft/parallel/pipeline/check_claims.h -- checks the claims of a schedule's text.
//
//   BUBBLE (stages - 1) * (F + B)     step time minus work, checked for several F, B and W
//   PEAK stages - stage               an upper bound per stage; exact for the stage that holds most
//
// Claims are not tested at sizes or times that FROM excludes.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule.h"
#include "weft/parallel/pipeline/schedule_text.h"

namespace weft::pipeline {

// Returns the claims that were tested, "BUBBLE" and "PEAK". Fails if one is false, and reports the
// actual value. REQUIRES: `schedule` was unfolded from the text with these parameters and passed
// verify().
Result<std::vector<std::string>> check_claims(const ScheduleText& text, const Schedule& schedule,
                                              const std::map<std::string, double>& parameters);

}  // namespace weft::pipeline
