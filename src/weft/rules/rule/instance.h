// weft/rules/rule/instance.h -- a rule at one choice of everything it leaves open.
//
//   given x[B, K], v[K, n]  ..  p = contract(x, v, to=[B, n])
//
//   B = [i0, i1], K = [], n = i2 of size 3:
//     %0 = input {name=x, type=f32[i1=1,i0=4]}
//     %1 = input {name=v, type=f32[i2=3]}
//     %2 = contract %0, %1 {to=[i0,i1,i2]}      the left, then the right
//
// Drawn at random: how many indices a variable stands for, which names coincide, the order of indices, sizes
// (1 among them, and different ones for one name where that may make sense; large ones, and those at which the
// rule's own numbers make a difference, see breakpoints.h), attributes, operators, the dtype, and for rules that communicate the mesh and the layouts. What the left side refuses, or the guard,
// is drawn again; so an instance is a place where the rule would fire.
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

// An index variable in the list of an input.
struct InputIndex {
  std::uint16_t input = 0, index = 0;
};

struct InstanceOptions {
  std::int64_t largest = 5;  // size of an index
  std::int32_t attempts = 600;
  // Sizes and attributes beyond the small ones: the rule's own numbers, what lies beside them, and larger ones.
  bool wide = false;
  // Where this input must have another size along this index than the others: chance alone seldom finds the
  // few such cases that a left side accepts.
  std::optional<InputIndex> apart = {};
};

struct RuleInstance {
  // Both sides over the same inputs: the outputs are the left's in order, then the right's.
  plan::Graph graph;
  std::optional<plan::Graph> held;  // where a constant is not what its dtype holds (held_constants.h)
  Bindings bindings;
  std::vector<plan::ValueId> left;    // the left side's values
  std::optional<Error> refusal;       // why the right side does not fit here; then it has no outputs
  plan::Mesh mesh;                    // without axes: one device
  std::vector<plan::Layout> layouts;  // of each value, on a mesh
  std::int64_t elements = 0;          // of all inputs: how small it is
  std::uint64_t shape = 0;            // a hash of all that was drawn

  // Whether equality is asked of the held constants: of a rule that states numbers or casts them. Constants that a
  // plan brings are held by both sides; where one side has an attribute instead, that is rounding.
  bool judges_held = true;

  // What plans run, and what is judged.
  const plan::Graph& run_graph() const { return held ? *held : graph; }
  const plan::Graph& judged_graph() const { return judges_held ? run_graph() : graph; }
  bool distributed() const { return !mesh.axes.empty(); }
  Place place(const Rule& rule) const { return {graph, rule, bindings, left, &mesh, layouts}; }
};

// Fails when no instance was found in as many attempts, and says what refused the last.
Result<RuleInstance> draw_instance(const Rule& rule, Random& random, const InstanceOptions& options = {});

// Whether the rule speaks of several ranks.
bool is_distributed(const Rule& rule);

// The operators that a variable of this class may stand for in an instance.
std::vector<const plan::Operator*> operators_of(OperatorVariable::Class of);

}  // namespace weft::rule
