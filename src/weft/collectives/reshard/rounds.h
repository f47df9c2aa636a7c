// weft/collectives/reshard/rounds.h -- who sends to whom when, so that the busiest host is never idle.
//
//   traffic  0->2: 3   0->3: 1          time   0    1    2    3    4
//            1->2: 1   1->3: 3          0 sends |-- to 2 -----|to 3|
//                                       1 sends |-- to 3 -----|to 2|
//
// A preemptive open shop: a host sends to one at a time and receives from one at a time. It ends when the
// host with the most to send or to receive does, and no later (Birkhoff; Gonzalez and Sahni 1976).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace weft::reshard {

struct Traffic {
  std::int32_t from = 0, to = 0;  // hosts
  std::int64_t elements = 0;
};

// A stretch [begin, end) of one traffic, sent without a break from `start` on. One element takes time 1.
struct Stretch {
  std::size_t traffic = 0;
  std::int64_t begin = 0, end = 0, start = 0;
};

// More pairs than these take too long to schedule exactly.
constexpr std::size_t kMostExactPairs = 1 << 14;

// By start. Above kMostExactPairs the stretches are whole traffics, `start` says only their order, and hosts
// may wait for each other. REQUIRES: no pair (from, to) twice.
std::vector<Stretch> make_rounds(std::span<const Traffic> traffic);

}  // namespace weft::reshard
