// weft/plan/ops/pointwise.h -- functions of single elements; every one is a row of a table.
//
//   y[joined] = f(a[..], b[..], ..)      indices join by name: those of the widest operand, then the rest
//
// A row says the name, the operands it takes, what it gives, what it costs, what it means over
// every number type, and its gradient. Adding a function is adding a row.
#pragma once
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "weft/plan/ops/gradient.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/number.h"
#include "weft/plan/ops/operator.h"
#include "weft/plan/ops/rounded.h"

namespace weft::ops {

template <class T>
using Compute = T (*)(const Numbers<T>& numbers, const T* operands);

// One generic lambda, kept for each number type.
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
  std::size_t arity;
  double flops;     // an element: 1 for arithmetic and comparison, kTranscendental for exp and its kind
  Elements takes;   // what operands must be; they share one dtype
  bool gives_bool;  // else the operands' dtype
  Meaning meaning;
  Status (*gradient)(Gradient& g);  // null: none
  Meaning of_integers = {};         // where integers mean something else: division truncates
};

// The row of an operator of this table; null for others.
const Pointwise* find_pointwise(const plan::Operator& op);
inline bool is_pointwise(const plan::Operator& op) { return find_pointwise(op) != nullptr; }

// The gradients, in pointwise_gradient.cpp.
namespace gradient_of {
Status add(Gradient& g);
Status sub(Gradient& g);
Status mul(Gradient& g);
Status div(Gradient& g);
Status mod(Gradient& g);
Status pow(Gradient& g);
Status extremum(
    Gradient& g);  // maximum and minimum: the operand that is the result gets it, each a half on a tie
Status neg(Gradient& g);
Status abs(Gradient& g);
Status select(Gradient& g);
Status exp(Gradient& g);
Status log(Gradient& g);
Status sqrt(Gradient& g);
Status rsqrt(Gradient& g);
Status sin(Gradient& g);
Status cos(Gradient& g);
Status tanh(Gradient& g);
Status erf(Gradient& g);
Status sigmoid(Gradient& g);
Status relu(Gradient& g);
Status gelu(Gradient& g);
Status gelu_tanh(Gradient& g);
Status silu(Gradient& g);
}  // namespace gradient_of

}  // namespace weft::ops
