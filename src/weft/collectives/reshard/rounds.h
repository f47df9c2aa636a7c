// weft/collectives/reshard/rounds.h -- schedules traffic so that the busiest host is never idle.
//
//   traffic  0->2: 3   0->3: 1          time   0    1    2    3    4
//            1->2: 1   1->3: 3          0 sends |-- to 2 -----|to 3|
//                                       1 sends |-- to 3 -----|to 2|
//
// A preemptive open shop: a host sends to one host at a time and receives from one at a time. The
// schedule ends as soon as the host with the most to send or receive is done (Birkhoff; Gonzalez
// and Sahni 1976).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace weft::reshard {

struct Traffic {
  std::int32_t from = 0, to = 0;  // hosts
  std::int64_t elements = 0;
};

// Elements [begin, end) of one traffic, sent without interruption from `start` on. An element takes
// time 1.
struct Stretch {
  std::size_t traffic = 0;
  std::int64_t begin = 0, end = 0, start = 0;
};

// Scheduling more pairs exactly takes too long.
constexpr std::size_t kMostExactPairs = 1 << 14;

// Sorted by start. Above kMostExactPairs each stretch is a whole traffic, `start` only gives an
// order, and hosts may wait for each other.
// REQUIRES: pairs (from, to) are distinct.
std::vector<Stretch> make_rounds(std::span<const Traffic> traffic);

}  // namespace weft::reshard
