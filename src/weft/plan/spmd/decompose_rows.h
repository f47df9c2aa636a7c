// weft/plan/spmd/decompose_rows.h -- decomposes operators on whole rows, to slice along the rows.
//
//   loss = cross-entropy x, label over v    peak   = reduce x {kind=peak}              over v: addends of max
//                                           total  = reduce exp(x - peak) {kind=sum}           addends of sum
//                                           picked = gather label, x along v                   addends of sum
//                                           loss   = peak + log(total) - picked
//
//   its gradient                            exp(x - peak) * dloss / total - (dloss where v = label)
//     with smoothing s                      1 - s of the label's part, and s / size(v) of every word's
//   linear-cross-entropy                    its logits as a product, and both of the above
//   softmax x over t                        exp(x - peak) / total
//
//   batch-norm x over b, h, w               mean     = reduce x {kind=mean}                    addends of sum
//                                           variance = reduce (x - mean)^2 {kind=mean}         addends of sum
//                                           y        = (x - mean) * rsqrt(variance + epsilon)
//
// All computation along v is elementwise or a reduction. So a rank with a slice of the words
// computes the slice's part, and only one number per row is combined. On one device the fused
// operators are faster: they are decomposed only where a plan slices the rows. If loss and gradient
// are both decomposed, the gradient reuses peak and total. The variance uses deviations from the
// mean of the whole batch, in a second pass: the mean of squares minus the square of the mean loses
// all digits if the mean is large.
//
// Both forms are equal over the prime field, where proofs are made: see `peak` in reduce.cpp.
#pragma once
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/formula.h"
#include "weft/plan/ops/linear_loss_shape.h"

namespace weft::spmd {

// The indices along which a node can be sliced once it is decomposed; empty if it cannot be
// decomposed.
std::span<const Symbol> decomposable_rows(const plan::NodeView& node);

class RowDecomposer {
 public:
  // REQUIRES: the graph outlives it.
  explicit RowDecomposer(plan::Graph& graph) : graph_(graph), f_(graph) {}

  // Adds nodes over `inputs` that compute the results of `node`, a node of another plan with the
  // same symbols.
  // REQUIRES: decomposable_rows(node) is not empty.
  Result<std::vector<plan::ValueId>> open(const plan::NodeView& node, std::span<const plan::ValueId> inputs);

 private:
  struct Rows {
    plan::ValueId peak, total;  // the maximum of each row, and the sum of exp(x - maximum)
  };

  Rows rows_of(plan::ValueId x, std::span<const Symbol> over, bool may_be_empty);
  plan::ValueId exponential(plan::ValueId x, plan::ValueId peak);
  // `real`: the dtype in which labels are compared, one that the row computes in.
  plan::ValueId has_label(plan::ValueId label, plan::Dim classes, plan::DType real);
  plan::ValueId is_label(plan::ValueId label, plan::Dim classes, plan::DType real);

  plan::ValueId softmax_of(plan::ValueId x, std::span<const Symbol> over);
  plan::ValueId cross_entropy_of(plan::ValueId x, plan::ValueId label, Symbol over, double smoothing);
  plan::ValueId cross_entropy_gradient_of(plan::ValueId x, plan::ValueId label, plan::ValueId dloss,
                                          Symbol over, double smoothing);
  std::vector<plan::ValueId> linear_cross_entropy_of(const ops::LinearLossShape& of,
                                                     std::span<const plan::ValueId> inputs);
  std::vector<plan::ValueId> batch_norm_of(const plan::NodeView& node, std::span<const plan::ValueId> inputs);

  plan::Graph& graph_;
  ops::Formula f_;
  std::map<std::tuple<plan::ValueId, std::vector<Symbol>, bool>, Rows> rows_;
  std::map<std::tuple<plan::ValueId, std::int64_t, plan::DType>, plan::ValueId> labelled_;
};

}  // namespace weft::spmd
