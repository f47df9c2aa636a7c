// The gradients of pointwise functions with more than one operand, one equation each: dy is the
// gradient of the result y, a and b (or x) are the operands. The gradient of a broadcast operand is
// summed over the indices it lacks. Gradients of unary functions are in their rows.
#include <array>
#include <vector>

#include "weft/base/check.h"
#include "weft/plan/ops/all.h"
#include "weft/plan/ops/arithmetic.h"
#include "weft/plan/ops/formula.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/plan/ops/sources.h"

namespace weft::ops::gradient_of {
namespace {

using plan::ValueId;

// The names the equations use.
struct Equation {
  explicit Equation(Gradient& gradient)
      : g(gradient),
        f(gradient.graph),
        dy(gradient.of_result()),
        y(gradient.node().result(0)),
        x(operand(0)) {}

  ValueId operand(std::size_t i) const { return g.node().input(i); }
  Dims dims(std::size_t i) const { return g.node().input_type(i).dims; }
  // Sets the gradient of operand i to the term, summed to the operand's indices.
  void give(std::size_t i, ValueId term) {
    if (f.status().ok()) g.set(i, f.sum(term, dims(i)));
  }

  Gradient& g;
  Formula f;
  const ValueId dy, y, x;
};

// da = where ? dy : 0,  db = where ? 0 : dy; `first` is the operand a.
Status choose(Equation& t, ValueId where, std::size_t first) {
  const ValueId zero = t.f.number(0, t.dy);
  if (t.g.wants(first)) t.give(first, t.f(ops::select(), {where, t.dy, zero}));
  if (t.g.wants(first + 1)) t.give(first + 1, t.f(ops::select(), {where, zero, t.dy}));
  return t.f.status();
}

const Operator& named(std::string_view function) {
  const plan::Operator* const op = all().find(function);
  WEFT_CHECK(op != nullptr && is_pointwise(*op), function);
  return static_cast<const Operator&>(*op);
}

Status unary(Equation& t, ValueId dx) {
  t.g.set(0, dx);
  return t.f.status();
}

}  // namespace

Status add(Gradient& g) {
  Equation t(g);
  for (const std::size_t i : {0u, 1u})
    if (g.wants(i)) t.give(i, t.dy);
  return t.f.status();
}

Status sub(Gradient& g) {
  Equation t(g);
  if (g.wants(0)) t.give(0, t.dy);
  if (g.wants(1)) t.give(1, t.f(ops::neg(), {t.f.sum(t.dy, t.dims(1))}));
  return t.f.status();
}

Status mul(Gradient& g) {
  Equation t(g);
  for (const std::size_t i : {0u, 1u})
    if (g.wants(i)) g.set(i, t.f.product({t.dy, t.operand(1 - i)}, t.dims(i)));
  return t.f.status();
}

// da = dy / b,  db = -(dy * y) / b
Status div(Gradient& g) {
  Equation t(g);
  const ValueId b = t.operand(1);
  if (g.wants(0)) t.give(0, t.f(ops::div(), {t.dy, b}));
  if (g.wants(1)) g.set(1, t.f(ops::neg(), {t.f(ops::div(), {t.f.product({t.dy, t.y}, t.dims(1)), b})}));
  return t.f.status();
}

// y = a - b * trunc(a / b), so da = dy and db = dy * (y - a) / b
Status mod(Gradient& g) {
  Equation t(g);
  const ValueId a = t.operand(0), b = t.operand(1);
  if (g.wants(0)) t.give(0, t.dy);
  if (g.wants(1)) {
    const ValueId whole = t.f(ops::sub(), {t.y, a});
    g.set(1, t.f(ops::div(), {t.f.product({t.dy, whole}, t.dims(1)), b}));
  }
  return t.f.status();
}

// da = dy * b * a^(b-1),  db = dy * y * log a; but 0 where b = 0, and where a = 0 <= b: y is
// constant there.
Status pow(Gradient& g) {
  Equation t(g);
  const ValueId a = t.operand(0), b = t.operand(1);
  if (g.wants(0)) {
    const plan::NodeView exponent = g.graph.view(g.graph.value(b).producer);
    const bool never_zero = &exponent.op() == &ops::constant() && exponent.real(0) != 0;
    ValueId slope = t.f(ops::mul(), {t.f(ops::pow(), {a, t.f(ops::sub(), {b, t.f.number(1, b)})}), b});
    if (!never_zero)
      slope = t.f(ops::select(), {t.f(ops::equal(), {b, t.f.number(0, b)}), t.f.number(0, slope), slope});
    g.set(0, t.f.product({t.dy, slope}, t.dims(0)));
  }
  if (g.wants(1)) {
    const ValueId zero = t.f.number(0, a);
    const ValueId flat =
        t.f(ops::logical_and(), {t.f(ops::equal(), {a, zero}), t.f(ops::greater_equal(), {b, zero})});
    const ValueId slope = t.f(ops::mul(), {t.y, t.f(ops::log(), {a})});
    g.set(1, t.f.product({t.dy, t.f(ops::select(), {flat, zero, slope})}, t.dims(1)));
  }
  return t.f.status();
}

// Equal operands get one half each. If the other operand is a constant, it is a bound, and the
// whole gradient passes up to and including the bound.
Status extremum(Gradient& g) {
  Equation t(g);
  const bool is_max = g.node().op().name() == "maximum";
  const ValueId zero = t.f.number(0, t.dy);
  for (const std::size_t i : {0u, 1u}) {
    if (!g.wants(i)) continue;
    const ValueId own = t.operand(i), other = t.operand(1 - i);
    const bool bounded = g.graph.node(g.graph.value(other).producer).op == &ops::constant();
    if (bounded) {
      const ValueId within = t.f(is_max ? ops::greater_equal() : ops::less_equal(), {own, other});
      t.give(i, t.f(ops::select(), {within, t.dy, zero}));
      continue;
    }
    const ValueId wins = t.f(is_max ? ops::greater() : ops::less(), {own, other});
    const ValueId half = t.f(ops::mul(), {t.dy, t.f.number(0.5, t.dy)});
    const ValueId tied = t.f(ops::select(), {t.f(ops::equal(), {own, other}), half, zero});
    t.give(i, t.f(ops::select(), {wins, t.dy, tied}));
  }
  return t.f.status();
}

Status select(Gradient& g) {
  Equation t(g);
  return choose(t, t.operand(0), 1);
}

// 0 at zero, where abs is not differentiable.
Status abs(Gradient& g) {
  Equation t(g);
  const ValueId zero = t.f.number(0, t.x);
  const ValueId negative = t.f(ops::select(), {t.f(ops::less(), {t.x, zero}), t.f(ops::neg(), {t.dy}), zero});
  return unary(t, t.f(ops::select(), {t.f(ops::greater(), {t.x, zero}), t.dy, negative}));
}

Status formula(Gradient& g, const Terms& n, Term dx) {
  Equation t(g);
  const std::array<ValueId, 3> given = {t.dy, t.x, t.y};
  std::vector<ValueId> made;
  for (const Terms::Step& step : n.steps(dx)) {
    const auto at = [&](std::size_t i) { return made[step.operands[i]]; };
    if (step.operand != Terms::kNone)
      made.push_back(given[step.operand]);
    else if (step.function.empty())
      made.push_back(t.f.number(step.number, t.dy));
    else if (step.operands[1] == Terms::kNone)
      made.push_back(t.f(named(step.function), {at(0)}));
    else if (step.operands[2] == Terms::kNone)
      made.push_back(t.f(named(step.function), {at(0), at(1)}));
    else
      made.push_back(t.f(named(step.function), {at(0), at(1), at(2)}));
  }
  return unary(t, made.back());
}

}  // namespace weft::ops::gradient_of
