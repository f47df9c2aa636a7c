// weft/planner/search/stages.h -- shared by the planner stages and the code that runs them.
//
// Included only by files of search/.
#pragma once
#include <chrono>
#include <string_view>

#include "weft/planner/search/optimize.h"

namespace weft::search {

inline constexpr std::string_view kDistributeStage = "distribute", kCodecsStage = "codecs",
                                  kBucketStage = "bucket";

bool is_off(const Problem& problem, std::string_view stage);

// Infinite if there is no limit.
double seconds_until(std::chrono::steady_clock::time_point when);

}  // namespace weft::search
