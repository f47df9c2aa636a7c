// weft/runtime/measure/bench_batch.h -- the sizes that a bench goes through, and how many calls it times at once.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::measure {

// "256B..64MiB" by factors of `step`; the last is always among them.
Result<std::vector<std::int64_t>> bench_sizes(std::string_view text, std::int32_t step);

// How many calls take about ten milliseconds, when one takes `seconds`.
std::int64_t calls_of_a_batch(double seconds);

}  // namespace weft::measure
