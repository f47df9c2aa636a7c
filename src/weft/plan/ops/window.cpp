#include "weft/plan/ops/window.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/plan/ops/loops.h"

namespace weft::ops {

Result<std::int64_t> windows_along(const plan::NodeView& node, plan::Dim dim, std::int64_t window,
                                   std::int64_t stride, std::int64_t padding, std::int64_t count) {
  WEFT_TRY_STATUS(expect_between("stride", stride, 1, kLargestStep));
  WEFT_TRY_STATUS(expect_between("padding", padding, 0, kLargestStep));
  if (count != 0) {
    WEFT_TRY_STATUS(expect_between("a number of windows", count, 1, (dim.size - 1 + padding) / stride + 1));
    return count;
  }
  const std::int64_t room = dim.size + 2 * padding - window;
  if (room < 0)
    return user_error(fmt::format("a window of {} does not fit index {} of size {} with padding {}", window,
                                  node.text(dim.index), dim.size, padding));
  return room / stride + 1;
}

Status expect_result_gradient(const plan::NodeView& node, std::size_t operand,
                              std::span<const plan::Dim> result) {
  const plan::Type found = node.input_type(operand);
  if (std::ranges::equal(found.dims, result)) return {};
  const Symbols& symbols = node.graph().symbols();
  return user_error(fmt::format("operand {} must be the gradient of the result: expected {}, found {}",
                                operand, print(plan::Type{found.dtype, result}, symbols),
                                print(found, symbols)));
}

}  // namespace weft::ops
