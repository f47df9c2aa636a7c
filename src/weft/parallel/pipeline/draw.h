// weft/parallel/pipeline/draw.h -- draws a timed schedule: one row per stage, time to the right.
#pragma once
#include <cstddef>
#include <string>

#include "weft/parallel/pipeline/schedule_cost.h"

namespace weft::pipeline {

// ASCII: each column is a time interval, with the last digit of the micro-batch below F (upper row
// of digits), B or W; a dot is idle.
std::string draw_text(const Schedule& schedule, const Price& price, std::size_t width);

std::string draw_svg(const Schedule& schedule, const Price& price);

}  // namespace weft::pipeline
