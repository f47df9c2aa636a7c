// test/unit/case/rewriting_case.h -- small plans, and valid rules to rewrite them with.
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

// Fails the test if the text is invalid.
plan::Graph plan_of(std::string_view text);
std::vector<Rule> rules_of(std::string_view text);

// Rules with one and with two outputs, over commutative and other operators, with index, attribute
// and operator variables. All of them are valid.
const std::vector<Rule>& some_rules();

// A plan in which such rules match often: at most `nodes` nodes over a few inputs, some of them
// outputs.
plan::Graph random_plan(Random& random, std::size_t nodes);

// Everything that a draft can be queried for, as text.
std::string describe(const Draft& draft);

// The plan's outputs, for sources that depend only on their names.
std::vector<std::vector<double>> outputs_of(const plan::Graph& graph);
bool agree(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b);

}  // namespace weft::rule
