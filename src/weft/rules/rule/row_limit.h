// weft/rules/rule/row_limit.h -- up to how many rows, classes or positions a rule holds.
//
//   gather(cast(cast(p, to=bf16), to=i32), x, along=n) = gather(p, x, along=n)        up to 256 rows
//   select(less(position(along=n, size=s), 5000), x, 0) = x                           up to 4096
//
// Small instances are run as windows that begin at large row numbers (row_positions.h): at powers of two,
// at the rule's own numbers, and in between.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "weft/base/random.h"
#include "weft/rules/rule/instance.h"

namespace weft::rule {

// A power of two; nullopt if no window was found in which the sides differ; 0 if rows are cast but
// no instance could be used. `windows`: how many random windows to try per instance besides the
// powers of two.
std::optional<std::int64_t> most_rows(const Rule& rule, std::span<const RuleInstance* const> instances,
                                      int windows, Random& random);

}  // namespace weft::rule
