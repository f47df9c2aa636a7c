// weft/rules/equation/lower_operation.h -- lowers an operation at given shapes to a plan.
//
//   transpose{perm=[1,0]}(x[2,4])   %0 = input {name=0, type=f32[d0=2,d1=4]}
//                                   %1 = transpose %0 {to=[d1,d0]}
#pragma once
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/rules/equation/algebra.h"

namespace weft::equation {

struct Lowered {
  plan::Graph graph;
  std::vector<plan::ValueId> operands, results;
};

// REQUIRES: infer(operation, operands) gave `results`
Result<Lowered> lower(const Operation& operation, std::span<const Shape> operands,
                      std::span<const Shape> results);

// The windows along a dim, with `before` positions of padding in front of it and `after` behind.
struct Windows {
  std::int64_t count = 0, before = 0, after = 0;
};
// REQUIRES: size, window and stride are at least 1
Windows windows_along(std::int64_t size, std::int64_t window, std::int64_t stride, bool same_padding);

}  // namespace weft::equation
