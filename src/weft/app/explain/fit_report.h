// weft/app/explain/fit_report.h -- latency and bandwidth fitted to measured tables, as text and as JSON.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/predict/sim/collective/fit.h"

namespace weft::explain {

struct FittedTable {
  std::string name;
  std::vector<sim::Measurement> all;
  sim::Fit fit;
  std::optional<double> median_between, worst_between;  // prediction error on held-out sizes
};

// Includes the sizes at which the curves of two tables cross.
std::string print_text(std::span<const FittedTable> all);
std::string print_json(std::span<const FittedTable> all);  // one line

}  // namespace weft::explain
