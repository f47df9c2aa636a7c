// weft/rules/rule/narrow_search.h -- looks for the narrow regions that random numbers miss.
//
//   relu(1e-7 - (x*x - 7.3)^2) = 0        false between 2.70179 and 2.70191 alone
//   select(equal(x*x, 2*x + 5), u, v) = v false where the two meet
//
// Sides part where a relu, a maximum, a comparison, a step or a function changes course. So the argument of each is
// followed to zero by Newton's method, one input after the other, the change of sign is bisected, and both sides are run
// there, beside it, and as if numbers that almost meet were equal. Then the next argument is followed from there, by
// other inputs: two windows may have to be met at once.
#pragma once
#include <optional>
#include <vector>

#include "weft/base/random.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/run_instance.h"

namespace weft::rule {

// Whether anything in the instance changes course: else there is nothing to look for.
bool has_switches(const plan::Graph& graph);

// A run in which the sides differ; nothing where none was found in about so many evaluations.
std::optional<RealRun> find_narrow_difference(const RuleInstance& instance, int evaluations, Random& random);

// Whole numbers among the inputs, up to 2^30, at which something changes course: 231 where p*p*p meets 12326391.
std::vector<double> find_whole_turns(const RuleInstance& instance, int evaluations, Random& random);

}  // namespace weft::rule
