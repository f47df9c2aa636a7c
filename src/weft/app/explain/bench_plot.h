// weft/app/explain/bench_plot.h -- a plot of measured times of all libraries by message size.
#pragma once
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/runtime/measure/bench_row.h"

namespace weft::explain {

// Rows must have the same collective, number of ranks and transport. Draws one curve per library,
// one for the machine's limit, and the fastest library by size. Both axes are logarithmic. Fails if
// nothing was measured.
Result<std::string> bench_plot(std::span<const measure::BenchRow> rows);

}  // namespace weft::explain
