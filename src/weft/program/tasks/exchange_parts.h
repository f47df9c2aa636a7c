// weft/program/tasks/exchange_parts.h -- an all-reduce in parts: several calls, so that what is there first is read first.
//
//   bucket        | g9 | g8 |     g7      |                one call      |=====g9 g8 g7=====|
//   in 2 parts    | g9   g8 | |   g7      |                two           |==g9 g8==||===g7==|
//                                                          updates                  |g9|g8| |g7|
//
// Each part is an exchange of its own over a stretch of the same memory: it begins when what it gives is made, and
// whoever reads a tensor waits for the parts that hold it, as addresses say (waits.h). Parts go one after the other,
// so no more than one of them is under way. They are even, but end where a tensor does if one ends nearby, so none
// is larger than the others by more than a quarter; else on a cache line. All ranks cut alike: an exchange of few elements has parts that are empty.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

// Where the parts of `elements` end, of which `line` lie on a cache line; a tensor ends at each of `ends`, ascending.
std::vector<std::int64_t> part_ends(std::int64_t elements, std::int64_t line,
                                    std::span<const std::int64_t> ends, std::int64_t parts);

// Takes every exchange whose plan says so in its parts. Buffers must have been shared: the numbers of units change.
// Whether any was.
bool take_exchanges_in_parts(Program& program);

}  // namespace weft::program
