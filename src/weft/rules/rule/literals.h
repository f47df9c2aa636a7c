// weft/rules/rule/literals.h -- attributes that a pattern states literally: `stride=2`, kind='sum'.
#pragma once
#include <string>

#include "weft/plan/graph/graph.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// Other attributes bind a variable, list indices or compute a number, and need the whole match.
bool is_literal(const AttributeTerm& term);

// REQUIRES: is_literal(term)
bool literal_holds(const plan::Graph& graph, const plan::Node& node, std::size_t attribute,
                   const AttributeTerm& term);

// "groups of conv2d is 2, not 1"
std::string describe_mismatch(const plan::Graph& graph, const plan::Node& node, std::size_t attribute,
                              const AttributeTerm& term);

}  // namespace weft::rule
