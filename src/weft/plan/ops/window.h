// weft/plan/ops/window.h -- windows that slide along an index: convolutions and pools.
//
//   padding 1, size 3, stride 2 over 5 elements:   [. 0 1] [1 2 3] [3 4 .]   3 windows
//
// Padding is equal before and after the elements, and there are as many windows as fit. In the plan
// of a rank that has some of the windows (sliding.h), their number is stated, whatever padding that
// implies.
#pragma once
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::ops {

// The number of windows: `count`, or if that is 0, floor((size + 2 * padding - window) / stride) +
// 1. Fails if stride or padding is out of range, no window fits ("a window of 5 does not fit index
// h of size 3 with padding 0"), or a counted window would begin after the last element.
Result<std::int64_t> windows_along(const plan::NodeView& node, plan::Dim dim, std::int64_t window,
                                   std::int64_t stride, std::int64_t padding, std::int64_t count);

// Fails unless operand i has the dims of the windows' result: "operand 0 must be the gradient of
// the result: expected .., found ..".
Status expect_result_gradient(const plan::NodeView& node, std::size_t operand,
                              std::span<const plan::Dim> result);

}  // namespace weft::ops
