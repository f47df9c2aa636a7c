// weft/runtime/measure/bench_batch.h -- message sizes of a benchmark, and the number of calls per batch.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::measure {

// "256B..64MiB" in factors of `step`; always includes the last size.
Result<std::vector<std::int64_t>> bench_sizes(std::string_view text, std::int32_t step);

// The number of calls that take about ten milliseconds, if one takes `seconds`.
std::int64_t calls_per_batch(double seconds);

}  // namespace weft::measure
