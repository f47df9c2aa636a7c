// weft/plan/ops/normalization.h -- shared by layer-norm, rms-norm and batch-norm.
//
//   y = (x - mean) * rstd      rstd = 1 / sqrt(variance + epsilon)
#pragma once
#include <cstdint>
#include <span>

#include "weft/plan/ops/formula.h"
#include "weft/plan/ops/number.h"

namespace weft::ops {

template <class T>
struct Moments {
  T mean{}, variance{};  // biased variance: divided by the count
};

// The moments of the elements row[columns[0]], row[columns[1]], ..
template <class T>
Moments<T> moments(const Numbers<T>& numbers, const T* row, std::span<const std::int64_t> columns) {
  const T count = numbers.from_integer(static_cast<std::int64_t>(columns.size()));
  Moments<T> of;
  for (const std::int64_t column : columns) of.mean += row[column];
  of.mean = numbers.divide(of.mean, count);
  for (const std::int64_t column : columns) of.variance += (row[column] - of.mean) * (row[column] - of.mean);
  of.variance = numbers.divide(of.variance, count);
  return of;
}

// The dtype of statistics: sums of narrow dtypes need more bits. Gradients through them have the
// dtype of x and are rounded at each node, since widening y first would keep the wide y in memory.
constexpr plan::DType statistics_dtype(plan::DType dtype) {
  return dtype == plan::DType::bf16 || dtype == plan::DType::f16 ? plan::DType::f32 : dtype;
}

// dx = rstd * (dy - y * mean(dy * y)), with the mean over `over`. If the mean was subtracted too,
// use centered_gradient: dx = rstd * (dy - mean(dy) - y * mean(dy * y)).
plan::ValueId scaled_gradient(Formula& f, const plan::Type& x, Indices over, plan::ValueId dy,
                              plan::ValueId y, plan::ValueId rstd);
plan::ValueId centered_gradient(Formula& f, const plan::Type& x, Indices over, plan::ValueId dy,
                                plan::ValueId y, plan::ValueId rstd);
// The same as centered_gradient in another order: one pass over the channel computes both means,
// and a second pass uses both.
plan::ValueId channel_gradient(Formula& f, const plan::Type& x, Indices over, plan::ValueId dy,
                               plan::ValueId y, plan::ValueId rstd);

// Fails if the loss depends on a result other than the first: "layer-norm has no gradient through
// its result 1".
Status only_through_first(const Gradient& g);

}  // namespace weft::ops
