// weft/app/explain/fit_report.h -- what measured tables say about latency and bandwidth, in words and for programs.
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
  std::optional<double> median_between, worst_between;  // of the sizes that were kept out
};

// With the sizes at which the curves of two tables cross.
std::string print_text(std::span<const FittedTable> all);
std::string print_json(std::span<const FittedTable> all);  // one line

}  // namespace weft::explain
