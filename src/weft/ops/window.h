// weft/ops/window.h -- windows that slide along an index: convolutions and pools.
//
//   padding 1, size 3, stride 2 over 5 elements:   [. 0 1] [1 2 3] [3 4 .]   3 windows
//
// Signatures say that such an index is whole, since a block of windows reads beyond its block of elements.
// To cut it, as images are cut by rows, a rank needs its neighbours' borders:
//
//   rank 0   0 1 2 3 | 4        a layout sliced(y, before, after): a block, and the elements around it that
//   rank 1       3 | 4 5 6 7    windows reach, where there are any; made from sliced(y) by a communication
//                               `halo`, the identity in the global view
//
// With window, stride and padding as here, before = padding and after = window - stride - padding; the
// gradient of the operand reaches floor((window - 1 - padding) / stride) before and ceil(padding / stride)
// after in that of the result. Blocks of both sides must begin at the same window: stride divides the
// operand's. The outermost ranks pad, the others have padding 0 along y; what reaches too far is cut off.
#pragma once
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/plan/graph.h"

namespace weft::ops {

// How many windows fit: floor((size + 2 * padding - window) / stride) + 1. Fails when stride or
// padding is out of range, or no window fits: "a window of 5 does not fit index h of size 3 with padding 0".
Result<std::int64_t> windows_along(const plan::NodeView& node, plan::Dim dim, std::int64_t window,
                                   std::int64_t stride, std::int64_t padding);

// Fails unless operand i has the dims that the windows give: "operand 0 must be the gradient of
// the result: expected .., found ..".
Status expect_result_gradient(const plan::NodeView& node, std::size_t operand,
                              std::span<const plan::Dim> result);

}  // namespace weft::ops
