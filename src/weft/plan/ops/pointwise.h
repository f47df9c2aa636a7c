// weft/plan/ops/pointwise.h -- elementwise functions; each is a row of a table.
//
//   y[joined] = f(a[..], b[..], ..)      indices join by name: those of the widest operand, then the rest
//
// The table is pointwise_rows.h. This is its interface: each row gives the operator, its gradient,
// its CPU lane function, its GPU expression and its name in WeftQL.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "weft/plan/ops/gradient.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/number.h"
#include "weft/plan/ops/operator.h"
#include "weft/plan/ops/rounded.h"
#include "weft/plan/ops/terms.h"

namespace weft::ops {

template <class T>
using Compute = T (*)(const Numbers<T>& numbers, const T* operands);

// One generic lambda, instantiated for each number type.
struct Meaning {
  Compute<float> in_float = nullptr;
  Compute<double> in_double = nullptr;
  Compute<Field> in_field = nullptr;
  Compute<Rounded> in_rounded = nullptr;

  constexpr Meaning() = default;
  template <class F>
  constexpr Meaning(F f) : in_float(f), in_double(f), in_field(f), in_rounded(f) {}

  template <class T>
  Compute<T> in() const {
    if constexpr (std::is_same_v<T, float>)
      return in_float;
    else if constexpr (std::is_same_v<T, double>)
      return in_double;
    else if constexpr (std::is_same_v<T, Field>)
      return in_field;
    else
      return in_rounded;
  }
};

struct Pointwise {
  std::string_view name;
  std::size_t arity = 0;
  double flops = 0;  // per element: 1 for arithmetic and comparison, kTranscendental for exp etc.
  Elements takes = Elements::any;  // required element kind; operands share one dtype
  bool gives_bool = false;         // false: the operands' dtype
  bool is_slope = false;           // linear in operand 0: a gradient times a function of the others
  std::string_view usage,
      summary;  // in WeftQL: "silu(x)"; empty if it is an operator sign there, or missing
  Meaning meaning;
  Meaning of_integers;                        // if it differs for integers: division truncates
  Status (*gradient)(Gradient& g) = nullptr;  // null: none
  std::string_view cuda;                      // {0}, {1}, {2}: the operands; empty: made from `terms`
  Term (*terms)(Terms& n) = nullptr;          // of operands 0, 1, ..; null if `cuda` is set

  std::string_view word() const { return usage.substr(0, usage.find('(')); }  // its name in WeftQL
};

// All rows. A row's position is its Lane on the CPU.
std::span<const Pointwise> pointwise_rows();
const Operator& pointwise_operator(std::size_t place);

// The row of an operator of this table; null for other operators.
const Pointwise* find_pointwise(const plan::Operator& op);
inline bool is_pointwise(const plan::Operator& op) { return find_pointwise(op) != nullptr; }
// Its position in pointwise_rows(). REQUIRES: is_pointwise(op)
inline std::size_t pointwise_place(const plan::Operator& op) {
  return static_cast<std::size_t>(find_pointwise(op) - pointwise_rows().data());
}

// Gradients of functions of several operands, which may have been broadcast: in
// pointwise_gradient.cpp.
namespace gradient_of {
Status add(Gradient& g);
Status sub(Gradient& g);
Status mul(Gradient& g);
Status div(Gradient& g);
Status mod(Gradient& g);
Status pow(Gradient& g);
// For maximum and minimum: passes dy to the operand that is the result; half to each if they are
// equal.
Status extremum(Gradient& g);
Status abs(Gradient& g);
Status select(Gradient& g);
// Sets dx to the term `dx`, whose operands are dy, x and y.
Status formula(Gradient& g, const Terms& n, Term dx);
}  // namespace gradient_of

}  // namespace weft::ops
