// weft/program/memory/recompute.h -- which activations to keep and which to compute again, under a budget.
//
//   forward    x0 = F0(input)   x1 = F1(x0)   x2 = F2(x1)      any x may be dropped at any time and
//   backward   B2: x2 x1 g2 -> g1    B1: x1 x0 g1 -> g0  ..    computed again while its inputs are there
//
// F v needs the inputs of v and adds x_v. The loss gradient, as large as the last x, appears with the last x.
// B runs in reverse order, once each: B v needs x_v, the inputs of v and g_v, adds g_u of every input u that has
// none yet, then frees g_v and x_v. The graph's input always stays. What is resident never exceeds the budget.
//
// Every x not yet freed is needed once more, by its own B. So to drop it costs exactly its F, and the least
// time is all F and B once, and the least F that must be dropped.
//
// Pure: the same graph and budget give the same steps. More budget never costs more time.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"

namespace weft::memory {

struct RecomputeNode {
  std::string name;
  double forward = 0, backward = 0;  // times of F and B, in any one unit
  std::int64_t size = 0;             // of x, and of its gradient
  std::vector<std::int32_t> inputs;  // places of earlier nodes; -1 is the graph's input
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
  bool proven = false;            // no schedule takes less time
  std::int64_t least_budget = 0;  // below which nothing was found
  bool least_proven = false;      // and nothing is
  std::vector<RecomputeStep> steps;
  std::vector<RecomputeStep> least_steps;  // where not feasible: some that get by with the least budget
};

// At most so many nodes are taken.
inline constexpr std::size_t kMostRecomputeNodes = 4096;

// The steps of least time found within the budget. Fails as the user's mistake when a node reads itself or a
// later one, when one but the last is read by none, or when a size or time is negative or not finite.
Result<Recomputation> recompute(const RecomputeGraph& graph, std::int64_t budget);

}  // namespace weft::memory
