// test/unit/rewriting_case.h -- small plans and true rules to rewrite them with.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/random.h"
#include "weft/plan/graph/graph.h"
#include "weft/rules/rule/draft.h"
#include "weft/rules/rule/match.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// Fails the test where the text is wrong.
plan::Graph plan_of(std::string_view text);
std::vector<Rule> rules_of(std::string_view text);

// Rules with one output and with two, over operators that commute and that do not, with index, attribute and
// operator variables; all of them true.
const std::vector<Rule>& some_rules();

// A plan in which such rules match often: `nodes` or fewer over a few inputs, some of them outputs.
plan::Graph random_plan(Random& random, std::size_t nodes);

// Everything that can be asked of a draft, as text.
std::string describe(const Draft& draft);

// What the plan's outputs are for sources that depend on their names alone.
std::vector<std::vector<double>> outputs_of(const plan::Graph& graph);
bool agree(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b);

}  // namespace weft::rule
