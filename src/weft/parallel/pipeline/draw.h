// weft/parallel/pipeline/draw.h -- a priced schedule as a drawing: a row a stage, time to the right.
#pragma once
#include <cstddef>
#include <string>

#include "weft/parallel/pipeline/price.h"

namespace weft::pipeline {

// Letters for people: each column is a stretch of time, with the micro-batch's last digit under F (upper row of
// digits), B or W; a dot is idle.
std::string draw_text(const Schedule& schedule, const Price& price, std::size_t width);

std::string draw_svg(const Schedule& schedule, const Price& price);

}  // namespace weft::pipeline
