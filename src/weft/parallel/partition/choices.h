// weft/parallel/partition/choices.h -- one option for each item, the cheapest that fit: a knapsack with choices.
#pragma once
#include <cstdint>
#include <vector>

namespace weft::partition {

struct Option {
  double cost = 0, bytes = 0;
};
using Items = std::vector<std::vector<Option>>;

struct Choices {
  std::vector<std::int32_t> options;  // of each item; empty where nothing fits
  double cost = 0;                    // of these
  double bound = 0;                   // no choice that fits costs less
};

// By exchanging options for smaller ones, those first that save most bytes for their cost.
// REQUIRES: every item has an option.
Choices choose(const Items& items, double room);

// Starts from choose()'s answer and searches for a cheaper one until it is the cheapest, or so many steps are
// done; then `bound` says what is still open.
Choices choose_exactly(const Items& items, double room, const Choices& known, std::int32_t most_steps);

}  // namespace weft::partition
