// weft/planner/search/stages.h -- what the stages of the optimizer and their driver share.
//
// Included by the files of search/ only.
#pragma once
#include <chrono>
#include <string_view>

#include "weft/planner/search/optimize.h"

namespace weft::search {

inline constexpr std::string_view kDistributeStage = "distribute", kCodecsStage = "codecs",
                                  kBucketStage = "bucket";

bool is_off(const Problem& problem, std::string_view stage);

// Infinitely many where there is no limit.
double seconds_until(std::chrono::steady_clock::time_point when);

}  // namespace weft::search
