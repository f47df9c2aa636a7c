// weft/rules/rule/narrow_search.h -- searches for narrow failing regions that random numbers miss.
//
//   relu(1e-7 - (x*x - 7.3)^2) = 0        false only between 2.70179 and 2.70191
//   select(equal(x*x, 2*x + 5), u, v) = v false only where the two are equal
//
// Sides begin to differ where a relu, a maximum, a comparison, a step or another function changes
// branch. So the argument of each is driven to zero by Newton's method, one input at a time, and
// the change of sign is bisected. Both sides are run there, beside it, and with nearly equal
// numbers treated as equal. Then the next argument is followed from there with other inputs, since
// two narrow conditions may have to hold at once.
#pragma once
#include <optional>
#include <vector>

#include "weft/base/random.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/run_instance.h"

namespace weft::rule {

// Whether any node in the graph changes branch; if not, there is nothing to search for.
bool has_switches(const plan::Graph& graph);

// A run in which the sides differ; nullopt if none was found in about `evaluations` evaluations.
std::optional<RealRun> find_narrow_difference(const RuleInstance& instance, int evaluations, Random& random);

// Integers among the inputs, up to 2^30, at which a node changes branch: 231 where p*p*p equals
// 12326391.
std::vector<double> find_integer_switches(const RuleInstance& instance, int evaluations, Random& random);

}  // namespace weft::rule
