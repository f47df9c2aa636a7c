// weft/plan/ops/normalization.h -- what layer, root-mean-square and batch normalization share.
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
  T mean{}, variance{};  // the variance is the biased one: divided by the count
};

// Of the elements row[columns[0]], row[columns[1]], ..
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

// What statistics are kept in: sums of narrow numbers want more bits. Gradients through them are in the type of x,
// rounded at each node, since a y that is widened first would be kept so.
constexpr plan::DType statistics_dtype(plan::DType dtype) {
  return dtype == plan::DType::bf16 || dtype == plan::DType::f16 ? plan::DType::f32 : dtype;
}

// dx = rstd * (dy - y * mean(dy * y)): the mean runs over `over`. Where the mean was subtracted
// too, use centered_gradient: dx = rstd * (dy - mean(dy) - y * mean(dy * y)).
plan::ValueId scaled_gradient(Formula& f, const plan::Type& x, Indices over, plan::ValueId dy,
                              plan::ValueId y, plan::ValueId rstd);
plan::ValueId centered_gradient(Formula& f, const plan::Type& x, Indices over, plan::ValueId dy,
                                plan::ValueId y, plan::ValueId rstd);
// The same in another order: what a channel's means are taken from is read whole before any of them is there, and what
// follows is one pass that needs both.
plan::ValueId channel_gradient(Formula& f, const plan::Type& x, Indices over, plan::ValueId dy,
                               plan::ValueId y, plan::ValueId rstd);

// Fails when something depends on a result other than the first: "layer-norm has no gradient
// through its result 1".
Status only_through_first(const Gradient& g);

}  // namespace weft::ops
