// weft/planner/search/distribution/cheapest_way.h -- one choice for each step of a chain, such that all of it costs least.
//
//   steps          0    1 2    3        nodes   what a step costs by itself, with each of its choices
//   stretches      0 │ 1 2 x96 │ 3      joins   what two neighbours cost beside that, with each pair
//
// A stretch that repeats makes the same choices every time: its steps and joins count as often as they
// occur, and one more join leads from its last step back to its first. Dynamic programming over the steps;
// within a repeated stretch once for each choice of its first step. The answer is optimal; of equals, the one
// whose choices come first.
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
  // joins[s][a][b]: step s with a, followed by step s + 1 with b; the last step's is not used.
  std::vector<std::vector<std::vector<double>>> joins;
  // back[r][a][b]: the last step of stretch r with a, followed by its first with b; empty where it
  // does not repeat.
  std::vector<std::vector<std::vector<double>>> back;

  double total(std::span<const std::size_t> choices) const;
};

// By step. REQUIRES: each step has a choice.
std::vector<std::size_t> cheapest_way(const ChainCosts& costs);

}  // namespace weft::search
