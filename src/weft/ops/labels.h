// weft/ops/labels.h -- rows of logits with a label each: what cross-entropy and its gradient read.
#pragma once
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/ops/evaluation.h"
#include "weft/ops/loops.h"

namespace weft::ops {

// The indices of logits (operand 0) other than `over`; fails unless logits are real and label
// (operand 1) is an integer for each such row.
Result<DimList> labelled_rows(const plan::NodeView& node, Symbol over);

// Fails unless it is a share of the weight: at least 0 and below 1.
Status expect_smoothing(double smoothing);

template <class T>
class Labels {
 public:
  Labels(const Evaluation<T>& at, Symbol over)
      : rows(at.node().input_type(0), {&over, 1}),
        at_(at),
        places_(offsets_along(at.node().input_type(1), without(at.node().input_type(0).dims, {&over, 1}))) {}

  const Rows rows;  // of the logits, a column for each class

  // The label of a row, or -1 when it is outside the classes and the row is to be ignored.
  std::int64_t of(std::size_t row) const {
    const std::int64_t label = at_.numbers.to_integer(at_.input(1).data[places_[row]]);
    return label >= 0 && label < static_cast<std::int64_t>(rows.columns.size()) ? label : -1;
  }

  // The logit that the row should have made largest; smoothed, it is mixed with the mean of all.
  T wanted(const T* x, std::int64_t label, double smoothing) const {
    const T own = x[rows.columns[static_cast<std::size_t>(label)]];
    if (smoothing == 0) return own;
    T total = T();
    for (const std::int64_t column : rows.columns) total += x[column];
    return at_.numbers.from(1 - smoothing) * own +
           at_.numbers.from(smoothing / static_cast<double>(rows.columns.size())) * total;
  }

  // The largest logit of a row and the sum of exp(logit - largest). The field, which has no
  // range to exceed, subtracts nothing.
  std::pair<T, T> exponentials(const T* x) const {
    T shift = T(), total = T();
    if constexpr (!std::is_same_v<T, Field>) {
      shift = x[rows.columns[0]];
      for (const std::int64_t column : rows.columns) shift = at_.numbers.max(shift, x[column]);
    }
    for (const std::int64_t column : rows.columns)
      total += at_.numbers.apply(Function::exp, x[column] - shift);
    return {shift, total};
  }

 private:
  const Evaluation<T>& at_;
  std::vector<std::int64_t> places_;
};

}  // namespace weft::ops
