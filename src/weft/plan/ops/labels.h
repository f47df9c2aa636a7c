// weft/plan/ops/labels.h -- logits and labels: shared by cross-entropy and its gradient.
#pragma once
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/plan/ops/evaluation.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {

// The indices of the logits (operand 0) other than `over`. Fails unless the logits are real and the
// labels (operand 1) are one integer per such row.
Result<DimList> labelled_rows(const plan::NodeView& node, Symbol over);

// Fails unless 0 <= smoothing < 1.
Status expect_smoothing(double smoothing);

// The logit of the label; with smoothing, mixed with the mean of all logits.
template <class T>
T wanted_of(const Numbers<T>& numbers, const T* x, const std::vector<std::int64_t>& columns,
            std::int64_t label, double smoothing) {
  const T own = x[columns[static_cast<std::size_t>(label)]];
  if (smoothing == 0) return own;
  T total = T();
  for (const std::int64_t column : columns) total += x[column];
  return numbers.from(1 - smoothing) * own +
         numbers.from(smoothing / static_cast<double>(columns.size())) * total;
}

// The largest logit of a row and the sum of exp(logit - largest). The field cannot overflow, so it
// subtracts nothing.
template <class T>
std::pair<T, T> exponentials_of(const Numbers<T>& numbers, const T* x,
                                const std::vector<std::int64_t>& columns) {
  T shift = T(), total = T();
  if constexpr (!std::is_same_v<T, Field>) {
    shift = x[columns[0]];
    for (const std::int64_t column : columns) shift = numbers.max(shift, x[column]);
  }
  for (const std::int64_t column : columns) total += numbers.apply(Function::exp, x[column] - shift);
  return {shift, total};
}

template <class T>
class Labels {
 public:
  Labels(const Evaluation<T>& at, Symbol over)
      : rows(at.node().input_type(0), {&over, 1}),
        at_(at),
        places_(offsets_along(at.node().input_type(1), without(at.node().input_type(0).dims, {&over, 1}))) {}

  const Rows rows;  // of the logits, one column per class

  // The label of a row, or -1 if it is outside the classes and the row is to be ignored.
  std::int64_t of(std::size_t row) const {
    const std::int64_t label = at_.numbers.to_integer(at_.input(1).data[places_[row]]);
    return label >= 0 && label < static_cast<std::int64_t>(rows.columns.size()) ? label : -1;
  }

  T wanted(const T* x, std::int64_t label, double smoothing) const {
    return wanted_of(at_.numbers, x, rows.columns, label, smoothing);
  }
  std::pair<T, T> exponentials(const T* x) const { return exponentials_of(at_.numbers, x, rows.columns); }

 private:
  const Evaluation<T>& at_;
  std::vector<std::int64_t> places_;
};

}  // namespace weft::ops
