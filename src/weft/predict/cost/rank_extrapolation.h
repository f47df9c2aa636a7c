// weft/predict/cost/rank_extrapolation.h -- extrapolates an algorithm's time from few ranks to many.
//
//   growth   steps                             time is linear in                   as in
//   blocks   each a message of bytes / ranks   ranks, where bytes / ranks is equal ring, all pairs, direct
//   hops     each a message of all bytes       ranks, where bytes are equal        chain
//   rounds   each a message of all bytes       log2 ranks, where bytes are equal   recursive doubling
//   halves   rounds of 1, 2, 4, ... blocks     of a round: its blocks, likewise    recursive halving
//
//   a ring of 128 forwards 127 times what a ring of 16 forwards 15 times:
//     T(128, 4 MiB) = T(16, 512 KiB) + 112 * (T(16, 512 KiB) - T(8, 256 KiB)) / 8
//
// Holds if all pairs of ranks are at the same distance and no two share a wire.
// exchange_costs_test checks the accuracy.
#pragma once
#include <cstdint>
#include <functional>

namespace weft::cost {

enum class Growth : std::uint8_t { blocks, hops, rounds, halves };

// Seconds with few ranks; infinite if the algorithm does not run with that many.
using KnownSeconds = std::function<double(std::int32_t ranks, double bytes)>;

// Seconds with `ranks`, extrapolated from `few` and 2 * `few` ranks and, for halves, `few` / 2.
// Infinite if one of these is, and for rounds and halves if `ranks` is not a power of two.
// REQUIRES: 2 * few <= ranks, and few a power of two from 4 on
double extrapolated_seconds(Growth growth, std::int32_t ranks, double bytes, std::int32_t few,
                            const KnownSeconds& known);

}  // namespace weft::cost
