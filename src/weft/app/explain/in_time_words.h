// weft/app/explain/in_time_words.h -- what text and page say alike of a plan in time.
//
// Included by the files of explain/ that do.
#pragma once
#include <string>

#include "weft/app/explain/in_time.h"

namespace weft::explain {

// "x .. block.11.mlp", one run a chunk.
std::string parts_of(const InTimeExplanation& explanation, const search::StageCost& stage);
// "schedule one_f_one_b: 2 stages, 4 micro-batches of b = 2", and what its bubble comes from: a line each.
std::string schedule_line(const InTimeExplanation& explanation);
std::string bubble_line(const search::PricedInTime& priced);

}  // namespace weft::explain
