#include "weft/plan/ops/labels.h"

#include <fmt/format.h>

namespace weft::ops {

Result<DimList> labelled_rows(const plan::NodeView& node, Symbol over) {
  const plan::Type logits = node.input_type(0), label = node.input_type(1);
  WEFT_TRY_STATUS(expect(node, 0, Elements::real));
  WEFT_TRY_STATUS(expect(node, 1, Elements::integer));
  WEFT_TRY_STATUS(expect_over(node, 0, {&over, 1}));
  DimList rows = without(logits.dims, {&over, 1});
  if (!std::ranges::is_permutation(rows, label.dims))
    return user_error(fmt::format("operand 1 must have a label for each row of logits: expected {}, found {}",
                                  print(plan::Type{label.dtype, rows}, node.graph().symbols()),
                                  print(label, node.graph().symbols())));
  return rows;
}

Status expect_smoothing(double smoothing) {
  if (smoothing >= 0 && smoothing < 1) return {};
  return user_error(fmt::format("smoothing must be at least 0 and below 1, found {}", smoothing));
}

}  // namespace weft::ops
