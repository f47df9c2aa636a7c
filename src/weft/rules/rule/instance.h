// weft/rules/rule/instance.h -- a rule with every free choice fixed.
//
//   given x[B, K], v[K, n]  ..  p = contract(x, v, to=[B, n])
//
//   B = [i0, i1], K = [], n = i2 of size 3:
//     %0 = input {name=x, type=f32[i1=1,i0=4]}
//     %1 = input {name=v, type=f32[i2=3]}
//     %2 = contract %0, %1 {to=[i0,i1,i2]}      the left, then the right
//
// Drawn at random: the number of indices per variable, which names coincide, the order of indices,
// sizes, attributes, operators, the dtype, and for rules that communicate the mesh and the layouts.
// Sizes include 1, different sizes for one name where that may be legal, large ones, and those at
// which the rule's own numbers matter (see breakpoints.h). If the left side or the guard rejects a
// draw, it is repeated. So an instance is a place where the rule would fire.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/base/random.h"
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/rules/rule/guards.h"
#include "weft/rules/rule/match.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// An index variable in an input's list.
struct InputIndex {
  std::uint16_t input = 0, index = 0;
};

struct InstanceOptions {
  std::int64_t largest = 5;  // largest size of an index
  std::int32_t attempts = 600;
  // Also draws larger sizes and attributes: the rule's own numbers, their neighbours, and larger
  // ones.
  bool wide = false;
  // If set, this input has a different size along this index than the others. Random draws rarely
  // find the few such cases that a left side accepts.
  std::optional<InputIndex> apart = {};
};

struct RuleInstance {
  // Both sides over the same inputs. The outputs are the left's in order, then the right's.
  plan::Graph graph;
  std::optional<plan::Graph> held;  // if its dtype changes a constant (rounded_constants.h)
  Bindings bindings;
  std::vector<plan::ValueId> left;    // the left side's values
  std::optional<Error> refusal;       // why the right side is ill-typed; then it has no outputs
  plan::Mesh mesh;                    // no axes: one device
  std::vector<plan::Layout> layouts;  // by value, on a mesh
  std::int64_t elements = 0;          // total of all inputs
  std::uint64_t shape = 0;            // a hash of everything drawn

  // Whether the sides are compared with rounded constants: if a rule states constants or casts
  // them. Constants from the plan are rounded on both sides; if one side has an attribute instead,
  // the difference is rounding.
  bool judges_rounded_constants = true;

  // The graph that plans run, and the graph that is judged.
  const plan::Graph& run_graph() const { return held ? *held : graph; }
  const plan::Graph& judged_graph() const { return judges_rounded_constants ? run_graph() : graph; }
  bool distributed() const { return !mesh.axes.empty(); }
  Place place(const Rule& rule) const { return {graph, rule, bindings, left, &mesh, layouts}; }
};

// Fails if no instance was found in options.attempts attempts, with the reason of the last failure.
Result<RuleInstance> draw_instance(const Rule& rule, Random& random, const InstanceOptions& options = {});

// Whether the rule involves several ranks.
bool is_distributed(const Rule& rule);

// The operators that a variable of this class may stand for in an instance.
std::vector<const plan::Operator*> operators_of(OperatorVariable::Class of);

}  // namespace weft::rule
