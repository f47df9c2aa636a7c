// weft/parallel/pipeline/check_claims.h -- does a schedule do what its text claims?
//
//   BUBBLE (stages - 1) * (F + B)     what a step takes longer than its work, for several F, B and W
//   PEAK stages - stage               what each stage holds at most; the stage that holds most holds all of it
//
// Where FROM says that the claims are not for these sizes or times, they are not tested.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule.h"
#include "weft/parallel/pipeline/schedule_text.h"

namespace weft::pipeline {

// Returns the claims that were tested, "BUBBLE" and "PEAK". Fails where one is false, and names what is so instead.
// REQUIRES: `schedule` is the text's for these parameters, and verify() has passed it.
Result<std::vector<std::string>> check_claims(const ScheduleText& text, const Schedule& schedule,
                                              const std::map<std::string, double>& parameters);

}  // namespace weft::pipeline
