// weft/plan/ops/arithmetic.h -- the pointwise operators that C++ code names (pointwise.cpp).
//
// All pointwise operators are rows of pointwise_rows.h.
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

// `and`, `or` and `not` are C++ keywords.
const Operator& add();
const Operator& sub();
const Operator& mul();
const Operator& div();
const Operator& mod();
const Operator& pow();
const Operator& maximum();
const Operator& minimum();
const Operator& neg();
const Operator& abs();
const Operator& equal();
const Operator& not_equal();
const Operator& less();
const Operator& less_equal();
const Operator& greater();
const Operator& greater_equal();
const Operator& logical_and();
const Operator& logical_or();
const Operator& logical_not();
const Operator& select();
const Operator& exp();
const Operator& log();
const Operator& sqrt();
const Operator& rsqrt();
const Operator& sin();
const Operator& cos();
const Operator& tanh();
const Operator& erf();
const Operator& sigmoid();
const Operator& relu();
const Operator& gelu();
const Operator& gelu_tanh();

}  // namespace weft::ops
