// weft/predict/cost/rank_growth.h -- how long an algorithm takes among many ranks, from what it takes among few.
//
//   growth   steps                             time is a straight line in          as in
//   blocks   each a message of bytes / ranks   ranks, where bytes / ranks is equal ring, all pairs, direct
//   hops     each a message of all bytes       ranks, where bytes are equal        chain
//   rounds   each a message of all bytes       log2 ranks, where bytes are equal   recursive doubling
//   halves   rounds of 1, 2, 4, ... blocks     of a round: its blocks, likewise    recursive halving
//
//   a ring of 128 passes on 127 times what a ring of 16 passes on 15 times:
//     T(128, 4 MiB) = T(16, 512 KiB) + 112 * (T(16, 512 KiB) - T(8, 256 KiB)) / 8
//
// Holds where any two ranks are equally near and none shares a wire. How well, exchange_prices_test says.
#pragma once
#include <cstdint>
#include <functional>

namespace weft::cost {

enum class Growth : std::uint8_t { blocks, hops, rounds, halves };

// Seconds among few ranks; infinite where the algorithm does not run so.
using KnownSeconds = std::function<double(std::int32_t ranks, double bytes)>;

// Among `ranks`, from `few`, twice and, of halves, half as many. Infinite where these are, and of rounds and
// halves where ranks are no power of two. REQUIRES: 2 * few <= ranks, and few a power of two from 4 on
double grown_seconds(Growth growth, std::int32_t ranks, double bytes, std::int32_t few,
                     const KnownSeconds& known);

}  // namespace weft::cost
