// weft/planner/exchange/collective_measured.h -- read a table of measured times for fitting.
#pragma once
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/nccl_tests_log.h"
#include "weft/predict/sim/collective/fit.h"

namespace weft::exchange {

// Every error names the file.
Result<formats::CollectiveTable> read_collective_table(const std::string& path);

// In-place times if the table has them, else out-of-place times. Sorted by size, at least one.
Result<std::vector<sim::Measurement>> measurements(const formats::CollectiveTable& table,
                                                   const std::string& path);
Result<std::vector<sim::Measurement>> read_measurements(const std::string& path);

}  // namespace weft::exchange
