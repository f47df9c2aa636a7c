// weft/program/tasks/partition_exchanges.h -- partitioned all-reduce.
//
//   bucket        | g9 | g8 |     g7      |                one call      |=====g9 g8 g7=====|
//   in 2 parts    | g9   g8 | |   g7      |                two           |==g9 g8==||===g7==|
//                                                          updates                  |g9|g8| |g7|
//
// Several calls let early results be read early. Each part is a separate exchange over a range of
// the same memory. It starts when its operands are ready, and the readers of a tensor wait for the
// parts that contain it, as determined by addresses (waits.h). Parts run one after the other, so
// only one is in flight. They are even, but end at the end of a tensor if one is nearby, so that
// none is more than a quarter larger than the others; otherwise on a cache line. All ranks split
// alike, so an exchange of few elements has empty parts.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

// The ends of the parts of `elements`, with `line` elements per cache line; tensors end at `ends`,
// ascending.
std::vector<std::int64_t> part_ends(std::int64_t elements, std::int64_t line,
                                    std::span<const std::int64_t> ends, std::int64_t parts);

// Splits every exchange for which the plan requests parts; returns whether there was any. REQUIRES:
// buffers have been shared. Unit numbers change.
bool partition_exchanges(Program& program);

}  // namespace weft::program
