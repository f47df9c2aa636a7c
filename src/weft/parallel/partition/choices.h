// weft/parallel/partition/choices.h -- multiple-choice knapsack: the cheapest options that fit.
#pragma once
#include <cstdint>
#include <vector>

namespace weft::partition {

struct Option {
  double cost = 0, bytes = 0;
};
using Items = std::vector<std::vector<Option>>;

struct Choices {
  std::vector<std::int32_t> options;  // by item; empty if nothing fits
  double cost = 0;                    // of these options
  double bound = 0;                   // lower bound: no choice that fits costs less
};

// Greedy: exchanges options for smaller ones, starting with the most bytes saved per unit of cost.
// REQUIRES: every item has an option.
Choices choose(const Items& items, double room);

// Improves choose()'s answer by branch and bound until it is optimal, or for at most `most_steps`
// steps; then `bound` tells how much could still be gained.
Choices choose_exactly(const Items& items, double room, const Choices& known, std::int32_t most_steps);

}  // namespace weft::partition
