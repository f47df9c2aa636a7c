// weft/rules/rule/draw_layouts.h -- draws a mesh for a rule's instance, and its layouts.
#pragma once
#include <string>
#include <vector>

#include "weft/base/random.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/rules/rule/breakpoints.h"
#include "weft/rules/rule/match.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// Which of the rule's variables are mesh axes, and their number.
std::vector<bool> axis_variables(const Rule& rule);
std::size_t count_axes(const Rule& rule);

// Two to four ranks per axis, sometimes five to seven or a number close to the rule's own;
// sometimes with an additional axis that the rule does not mention.
plan::Mesh draw_mesh(const Rule& rule, Random& random, const Breakpoints* wide = nullptr);

// The layout of each input, as text. For an input of a communication, usually the layout that it
// needs.
std::vector<std::string> draw_layouts(const Rule& rule, const plan::Mesh& mesh, const Bindings& bindings,
                                      const plan::Graph& graph, Random& random);

}  // namespace weft::rule
