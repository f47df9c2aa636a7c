// weft/rules/rule/far_rows.h -- up to how many rows, classes or positions a rule holds.
//
//   gather(cast(cast(p, to=bf16), to=i32), x, along=n) = gather(p, x, along=n)        up to 256 rows
//   select(less(position(along=n, size=s), 5000), x, 0) = x                           up to 4096
//
// Small instances are run as windows that begin far out (places.h), at powers of two, at the rule's own numbers and
// anywhere between.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "weft/base/random.h"
#include "weft/rules/rule/instance.h"

namespace weft::rule {

// A power of two; nothing where no window was found in which the sides differ; 0 where rows are cast and none could be
// counted. `windows`: how many to try at each
// instance besides the powers of two.
std::optional<std::int64_t> most_rows(const Rule& rule, std::span<const RuleInstance* const> instances,
                                      int windows, Random& random);

}  // namespace weft::rule
