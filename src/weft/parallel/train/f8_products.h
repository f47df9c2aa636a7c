// weft/parallel/train/f8_products.h -- f8 matrix products with weights, with one scale per row.
//
//   y[m, n] = sum over k of x[m, k] w[k, n]      becomes      y[m, n] = (sum over k of q[m, k] r[k, n]) s[m] t[n]
//
//   s[m] = max over k of |x[m, k]| / 448         q = x / s rounded to f8e4m3; gradients: f8e5m2, 57344
//
// q and r take one byte per element; s and t are bf16. Rounding the scales loses far less than
// rounding to f8. q stays in range: x / s is at most 450, and the nearest f8 number is 448. The
// forward pass and the gradients of activations are multiplied in f8. Gradients of weights are bf16
// products: they sum over the batch, and a scale must not depend on the index that is summed. With
// one scale per tensor, no micro-batch could start before the last had arrived. But values that the
// backward pass reads only for weight gradients are kept as q and s, and widened when needed. The
// maximum of a row is exact however the row is sliced, so ranks round as a single device does.
//
// Without rounding, the scales cancel: a proof over the field covers these plans like bf16 plans.
#pragma once
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// For a model or its training plan. Applies to products of two bf16 values, one of which depends on
// parameters only.
Result<plan::Graph> with_f8_products(const plan::Graph& graph);

}  // namespace weft::train
