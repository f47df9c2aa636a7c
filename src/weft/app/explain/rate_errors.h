// weft/app/explain/rate_errors.h -- errors of fitted rates on rows, by device, table and part of the sizes.
//
//   device  table             rows  median error  90 % below
//   h100    product bf16      2510         3.0 %      11.4 %
#pragma once
#include <string>
#include <vector>

#include "weft/app/explain/lines.h"
#include "weft/runtime/measure/fit_rates.h"

namespace weft::explain {

std::string print_text(const std::vector<measure::RateErrors>& errors, std::size_t width = kUsualWidth);
std::string print_json(const std::vector<measure::RateErrors>& errors);

}  // namespace weft::explain
