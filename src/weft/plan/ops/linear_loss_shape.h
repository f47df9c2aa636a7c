// weft/plan/ops/linear_loss_shape.h -- the index roles of linear-cross-entropy.
//
//   hidden[b, s, d]  words[v, d]  label[b, s]  bias[v], or none      over v, inner d
//
//   rows  [b, s]   hidden's indices without the inner ones; words has none of them
#pragma once
#include "weft/plan/ops/loops.h"

namespace weft::ops {

struct LinearLossShape {
  plan::Dim over;
  DimList rows, inner;
  double smoothing = 0;
  bool slopes = true;  // whether the derivatives are computed along with the loss

  std::int64_t row_count() const { return points_of(rows); }
  std::int64_t width() const { return points_of(inner); }
};

// REQUIRES: the node's types were inferred.
LinearLossShape classifying(const plan::NodeView& node);

}  // namespace weft::ops
