// weft/app/explain/bench_plot.h -- measured times of all sides against the size of the message, as a drawing.
#pragma once
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/runtime/measure/bench_row.h"

namespace weft::explain {

// Rows of one collective, number of ranks and transport: a line a side, one for the machine's limit, and who
// wins where. Both axes are logarithmic. Fails when nothing was measured.
Result<std::string> bench_plot(std::span<const measure::BenchRow> rows);

}  // namespace weft::explain
