// weft/planner/search/distribution/cheapest_choices.h -- choose one option per step of a chain at least cost.
//
//   steps          0    1 2    3        nodes   cost of a step by itself, per choice
//   stretches      0 │ 1 2 x96 │ 3      joins   additional cost of two neighbours, per pair of choices
//
// A repeated stretch makes the same choices in every repetition. Its steps and joins count once per
// repetition, and a further join connects its last step to its first. Solved by dynamic programming
// over the steps, within a repeated stretch once per choice of its first step. The result is
// optimal; of equals, it is the first in lexicographic order of choices.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace weft::search {

struct ChainCosts {
  struct Repeat {
    std::size_t steps = 1, times = 1;
  };
  std::vector<Repeat> stretches;
  std::vector<std::vector<double>> nodes;  // by step and choice
  // joins[s][a][b]: step s with choice a, followed by step s + 1 with b. That of the last step is
  // unused.
  std::vector<std::vector<std::vector<double>>> joins;
  // back[r][a][b]: the last step of stretch r with choice a, followed by its first with b. Empty if
  // it does not repeat.
  std::vector<std::vector<std::vector<double>>> back;

  double total(std::span<const std::size_t> choices) const;
};

// The choice of each step. REQUIRES: each step has at least one choice.
std::vector<std::size_t> cheapest_choices(const ChainCosts& costs);

}  // namespace weft::search
