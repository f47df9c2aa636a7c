// weft/parallel/train/f8_products.h -- products with weights of eight bits, with a scale a row.
//
//   y[m, n] = sum over k of x[m, k] w[k, n]      becomes      y[m, n] = (sum over k of q[m, k] r[k, n]) s[m] t[n]
//
//   s[m] = max over k of |x[m, k]| / 448         q = the f8e4m3 nearest to x / s; of a gradient f8e5m2, and 57344
//
// q and r are a byte an element, s and t bf16: what that rounds is far less than what q does, and q stays within its
// range, since x / s is at most 450, of which the nearest is 448. So the forward pass and the gradients of activations
// are multiplied in f8. Gradients of weights are bf16 products: they sum over the batch, and a scale must not depend
// on what is summed; with one a tensor, no micro-batch could begin before the last was there. But what the backward
// pass reads for them alone is kept as q and s, and widened when it is needed. The largest of a row is exact however
// the row is cut, so ranks round as one device does.
//
// Without rounding the scales cancel: a proof over the field proves these plans as it does those of bf16.
#pragma once
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// Of a model or of its training plan: products of two bf16 values, one of which is made of parameters alone.
Result<plan::Graph> with_f8_products(const plan::Graph& graph);

}  // namespace weft::train
