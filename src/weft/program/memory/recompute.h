// weft/program/memory/recompute.h -- which activations to keep or recompute under a budget.
//
//   forward    x0 = F0(input)   x1 = F1(x0)   x2 = F2(x1)      any x may be dropped at any time and
//   backward   B2: x2 x1 g2 -> g1    B1: x1 x0 g1 -> g0  ..    recomputed while its inputs are there
//
// F v reads the inputs of v and makes x_v. The loss gradient, as large as the last x, is made
// together with the last x. Each B runs once, in reverse order. B v reads x_v, the inputs of v and
// g_v, makes g_u for every input u without one, then frees g_v and x_v. The graph's input always
// stays. Memory use never exceeds the budget.
//
// Every x that has not been freed is needed once more, by its own B. So dropping it costs exactly
// its F. The least time is the sum of all F and B, plus the least total F of what must be dropped.
//
// Deterministic: the same graph and budget give the same steps. A larger budget never costs more
// time.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"

namespace weft::memory {

struct RecomputeNode {
  std::string name;
  double forward = 0, backward = 0;  // times of F and B, in any unit
  std::int64_t size = 0;             // of x, and of its gradient
  std::vector<std::int32_t> inputs;  // positions of earlier nodes; -1 is the graph's input
};

struct RecomputeGraph {
  std::string name;
  std::int64_t input_size = 0;
  std::vector<RecomputeNode> nodes;  // every node reads earlier ones; the last is the loss
};

struct RecomputeStep {
  enum class Kind : std::uint8_t { forward, drop, backward };
  Kind kind = Kind::forward;
  std::int32_t node = 0;

  friend bool operator==(const RecomputeStep&, const RecomputeStep&) = default;
};

std::string print(const RecomputeStep& step);  // "F 3", "drop 3", "B 3"

struct Recomputation {
  bool feasible = false;
  double time = 0;                // of all F and B in `steps`
  bool proven = false;            // whether no schedule takes less time
  std::int64_t least_budget = 0;  // the smallest budget for which steps were found
  bool least_proven = false;      // whether no smaller one is possible
  std::vector<RecomputeStep> steps;
  std::vector<RecomputeStep> least_steps;  // if not feasible: steps for the least budget
};

// The largest number of nodes that is accepted.
inline constexpr std::size_t kMostRecomputeNodes = 4096;

// The fastest steps found within the budget. A user error: a node that reads itself or a later one,
// a node other than the last that is never read, or a size or time that is negative or not finite.
Result<Recomputation> recompute(const RecomputeGraph& graph, std::int64_t budget);

}  // namespace weft::memory
