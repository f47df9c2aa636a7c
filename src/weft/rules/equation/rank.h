// weft/rules/equation/rank.h -- how useful a rule is likely to be: what its target saves.
//
//   all_gather(relu(x)) for relu(all_gather(x)):   the same bytes sent, 1/ranks of the work     gain > 0
//
// Computed at the equation's example, on its largest mesh, before any cost model: bytes sent per
// rank weigh most, then launches, then numbers computed.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/rules/equation/equation.h"
#include "weft/rules/equation/follows.h"
#include "weft/rules/equation/generate.h"

namespace weft::equation {

struct SideCost {
  double sent = 0;      // numbers sent per rank, by the best known algorithm (ring)
  double computed = 0;  // arithmetic operations per rank
  std::int32_t launches = 0;
};

// The cost of one of the equation's sides.
SideCost cost_of(const Equation& equation, std::span<const Operation> side);

// What the target saves, as a fraction of the source's cost; negative if it costs more.
double gain(const Equation& equation);

// The rules that save most in a direction in which they are proven, best first, as indices into
// `rules`. Leaves out rules that `known` implies, and all but one of rules that differ only in
// axes.
std::vector<std::size_t> most_useful(const std::vector<GeneratedRule>& rules, const Theory& known,
                                     std::size_t count);

}  // namespace weft::equation
