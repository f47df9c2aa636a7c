// weft/plan/ops/terms.h -- a formula as a tree of functions: one more number type (number.h).
//
//   Terms n;
//   const Term x = n.operand(0);
//   const Term y = x * n.apply(Function::tanh, x);      steps(y): 0: operand 0, 1: tanh #0, 2: mul #0 #1
//
// A formula written once over numbers can so become nodes of a plan (gradients) and GPU source.
// Steps are in a fixed order, operands first and from left to right, independent of the compiler's
// evaluation order.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/plan/ops/number.h"

namespace weft::ops {

class Terms;

struct Term {
  Terms* of = nullptr;
  std::uint32_t id = 0;

  friend Term operator+(Term a, Term b);
  friend Term operator-(Term a, Term b);
  friend Term operator*(Term a, Term b);
  friend Term operator-(Term a);
};

class Terms {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;
  // An operand, a number, or a function of earlier steps.
  struct Step {
    std::string_view function = {};  // a row of pointwise_rows.h; empty: an operand or a number
    std::array<std::uint32_t, 3> operands = {kNone, kNone, kNone};
    std::uint32_t operand = kNone;
    double number = 0;
  };

  Term operand(std::uint32_t i) { return add({.operand = i}); }
  Term from(double value) { return add({.number = value}); }
  Term call(std::string_view function, Term a) { return add({function, {a.id, kNone, kNone}}); }
  Term call(std::string_view function, Term a, Term b) { return add({function, {a.id, b.id, kNone}}); }
  Term call(std::string_view function, Term a, Term b, Term c) { return add({function, {a.id, b.id, c.id}}); }

  // The operations of Numbers<T>.
  Term divide(Term a, Term b) { return call("div", a, b); }
  Term apply(Function function, Term x);
  Term power(Term base, Term exponent) { return call("pow", base, exponent); }
  Term remainder(Term a, Term b) { return call("mod", a, b); }
  Term less(Term a, Term b) { return call("less", a, b); }
  Term greater(Term a, Term b) { return call("greater", a, b); }
  Term equal(Term a, Term b) { return call("equal", a, b); }
  Term choose(Term which, Term yes, Term no) { return call("select", which, yes, no); }
  Term max(Term a, Term b) { return call("maximum", a, b); }
  Term min(Term a, Term b) { return call("minimum", a, b); }
  Term sigmoid(Term x) { return call("sigmoid", x); }

  // The steps that `result` depends on, itself last. Operands are positions in this list.
  std::vector<Step> steps(Term result) const;

 private:
  Term add(const Step& step);  // equal steps are merged

  std::vector<Step> steps_;
};

}  // namespace weft::ops
