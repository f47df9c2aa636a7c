// weft/rules/rule/draw_layouts.h -- a mesh for a rule's instance, and what its ranks hold of the inputs.
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

// Which of the rule's variables are mesh axes, and how many there are.
std::vector<bool> axis_variables(const Rule& rule);
std::size_t count_axes(const Rule& rule);

// Two to four ranks along an axis, now and then five or seven, or what the rule's own numbers suggest; now and then
// with an axis that the rule does not speak of.
plan::Mesh draw_mesh(const Rule& rule, Random& random, const Breakpoints* wide = nullptr);

// The layout of each input, as text. Where an input goes straight into communication, mostly what that needs.
std::vector<std::string> draw_layouts(const Rule& rule, const plan::Mesh& mesh, const Bindings& bindings,
                                      const plan::Graph& graph, Random& random);

}  // namespace weft::rule
