// weft/plan/ops/build.h -- adds nodes to a plan, one call each, for gradients and the binder.
//
//   WEFT_TRY(h, add_contract(graph, {x, w}, to));        // y[to] = sum of products
//   WEFT_TRY(y, add_pointwise(graph, relu(), {h}));
//
// A call that would change nothing adds nothing and returns the operand: casting to the same dtype,
// transposing to the same order, slicing the whole index.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/operators.h"

namespace weft::ops {

using Values = std::span<const plan::ValueId>;
using Indices = std::span<const Symbol>;
using Dims = std::span<const plan::Dim>;

// Sources. An initial value is a word and up to two numbers: normal(0, 0.02), uniform(-1, 1).
struct Initial {
  std::string_view kind = "zeros";  // or ones, constant, normal, uniform
  double a = 0, b = 0;
};
Result<plan::ValueId> add_input(plan::Graph& graph, std::string_view name, plan::TypeId type,
                                std::string_view layout = "");  // on a mesh: "sliced(b) on gpu"
Result<plan::ValueId> add_parameter(plan::Graph& graph, std::string_view name, plan::TypeId type,
                                    const Initial& initial = {});
Result<plan::ValueId> add_state(plan::Graph& graph, std::string_view name, plan::TypeId type,
                                const Initial& initial = {});
Result<plan::ValueId> add_constant(plan::Graph& graph, double value, plan::DType dtype);  // a scalar
Result<plan::ValueId> add_position(plan::Graph& graph, plan::Dim along);  // 0, 1, .. size-1 as i32[along]

// Sums and products. `kind` is sum, mean, max or min.
Result<plan::ValueId> add_contract(plan::Graph& graph, Values operands, Indices to);
Result<plan::ValueId> add_contract(plan::Graph& graph, std::initializer_list<plan::ValueId> operands,
                                   Indices to);
Result<plan::ValueId> add_reduce(plan::Graph& graph, std::string_view kind, plan::ValueId x, Indices to);
// The product of the operands with exactly the dims `to`, in that order. Indices that `to` lacks
// are summed; indices that no operand has are broadcast. The gradient of a product has this form. A
// plain product of two operands without a sum becomes `mul`.
Result<plan::ValueId> add_contract_spread(plan::Graph& graph, Values operands, Dims to);
Result<plan::ValueId> add_contract_spread(plan::Graph& graph, std::initializer_list<plan::ValueId> operands,
                                          Dims to);

// Pointwise: indices join by name. The result has the indices of the widest operand, then the rest.
Result<plan::ValueId> add_pointwise(plan::Graph& graph, const Operator& op, Values operands);
Result<plan::ValueId> add_pointwise(plan::Graph& graph, const Operator& op,
                                    std::initializer_list<plan::ValueId> operands);
Result<plan::ValueId> add_cast(plan::Graph& graph, plan::ValueId x, plan::DType to);
Result<plan::ValueId> add_stop_gradient(plan::Graph& graph, plan::ValueId x);

// Views and moves.
Result<plan::ValueId> add_broadcast(plan::Graph& graph, plan::ValueId x,
                                    Dims to);  // any order, all of x's indices
Result<plan::ValueId> add_transpose(plan::Graph& graph, plan::ValueId x, Indices to);
Result<plan::ValueId> add_rename(plan::Graph& graph, plan::ValueId x, Indices from, Indices to);
Result<plan::ValueId> add_split(plan::Graph& graph, plan::ValueId x, Symbol along, Dims into);
Result<plan::ValueId> add_merge(plan::Graph& graph, plan::ValueId x, Indices along, Symbol into);
Result<plan::ValueId> add_slice(plan::Graph& graph, plan::ValueId x, Symbol along, std::int64_t begin,
                                std::int64_t end);
Result<plan::ValueId> add_pad(plan::Graph& graph, plan::ValueId x, Symbol along, std::int64_t before,
                              std::int64_t after);
Result<plan::ValueId> add_concat(plan::Graph& graph, Values operands, Symbol along);
Result<plan::ValueId> add_concat(plan::Graph& graph, std::initializer_list<plan::ValueId> operands,
                                 Symbol along);

// Functions over the indices `over`, with one row per point of the other indices.
Result<plan::ValueId> add_softmax(plan::Graph& graph, plan::ValueId x, Indices over);
struct Normalized {
  plan::ValueId y, rstd;  // rstd: 1 / standard deviation, kept for the gradient
};
Result<Normalized> add_layer_norm(plan::Graph& graph, plan::ValueId x, Indices over, double epsilon = 1e-5);
Result<Normalized> add_rms_norm(plan::Graph& graph, plan::ValueId x, Indices over, double epsilon = 1e-5);
struct BatchNormalized {
  plan::ValueId y, next_mean, next_variance, rstd;
};
enum class BatchNormMode : std::uint8_t { train, infer };
Result<BatchNormalized> add_batch_norm(plan::Graph& graph, plan::ValueId x, plan::ValueId mean,
                                       plan::ValueId variance, Indices over, BatchNormMode mode,
                                       double epsilon = 1e-5, double momentum = 0.1);
Result<plan::ValueId> add_cross_entropy(plan::Graph& graph, plan::ValueId logits, plan::ValueId label,
                                        Symbol over, double smoothing = 0);
// 1 where the label is in [0, classes), else 0.
Result<plan::ValueId> add_labelled(plan::Graph& graph, plan::ValueId label, std::int64_t classes,
                                   plan::DType dtype);

// Joins on a value, and routing.
Result<plan::ValueId> add_gather(plan::Graph& graph, plan::ValueId positions, plan::ValueId table,
                                 Symbol along, std::int64_t begin = 0);
Result<plan::ValueId> add_scatter_add(plan::Graph& graph, plan::ValueId positions, plan::ValueId x,
                                      plan::Dim along, Indices to, std::int64_t begin = 0);
struct TopK {
  plan::ValueId values, positions;
};
Result<TopK> add_top_k(plan::Graph& graph, plan::ValueId x, Symbol over, plan::Dim into);
Result<plan::ValueId> add_slot(plan::Graph& graph, plan::ValueId expert, std::int64_t experts,
                               std::int64_t capacity, Indices over);

// Images: x[b,c,h,w], w[o,i,r,q]; pools use the last two indices of x.
struct ConvWindow {
  std::int64_t stride = 1, padding = 0, groups = 1;
  std::int64_t padding_w = -1;  // left and right; -1: same as above and below
};
Result<plan::ValueId> add_conv2d(plan::Graph& graph, plan::ValueId x, plan::ValueId w,
                                 const ConvWindow& window = {});
// The transpose of a convolution: x[b,o,h,w], w[o,c,r,q] to [b,c,h',w']; `extra` is the output
// padding at the far ends.
Result<plan::ValueId> add_conv2d_transpose(plan::Graph& graph, plan::ValueId x, plan::ValueId w,
                                           const ConvWindow& window = {}, std::int64_t extra = 0);
struct PoolWindow {
  std::int64_t size, stride, padding = 0;
};
Result<plan::ValueId> add_max_pool(plan::Graph& graph, plan::ValueId x, const PoolWindow& window);
Result<plan::ValueId> add_avg_pool(plan::Graph& graph, plan::ValueId x, const PoolWindow& window);

// Sequences and noise.
Result<plan::ValueId> add_rotary(plan::Graph& graph, plan::ValueId x, Symbol along, Symbol pairs,
                                 double base = 10000);
// y[t] = decay[t] * y[t - 1] + x[t] along an index, or backwards from its end.
Result<plan::ValueId> add_recurrence(plan::Graph& graph, plan::ValueId decay, plan::ValueId x, Symbol along,
                                     bool reverse = false);
Result<plan::ValueId> add_dropout(plan::Graph& graph, plan::ValueId x, plan::ValueId step, double rate,
                                  std::int64_t stream);

// One optimizer step: the next weight and the next moments. A valid `rate` multiplies lr.
struct MomentumStep {
  plan::ValueId weight, momentum;
};
struct AdamStep {
  plan::ValueId weight, first, second;
};
struct AdamSettings {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};
Result<plan::ValueId> add_sgd(plan::Graph& graph, plan::ValueId weight, plan::ValueId gradient, double lr,
                              plan::ValueId rate = {});
Result<MomentumStep> add_momentum(plan::Graph& graph, plan::ValueId weight, plan::ValueId gradient,
                                  plan::ValueId velocity, double lr, double mu = 0.9,
                                  plan::ValueId rate = {});
Result<AdamStep> add_adam(plan::Graph& graph, plan::ValueId weight, plan::ValueId gradient,
                          plan::ValueId first, plan::ValueId second, plan::ValueId step,
                          const AdamSettings& settings = {}, plan::ValueId rate = {});
Result<AdamStep> add_adamw(plan::Graph& graph, plan::ValueId weight, plan::ValueId gradient,
                           plan::ValueId first, plan::ValueId second, plan::ValueId step,
                           const AdamSettings& settings = {}, double decay = 0.01, plan::ValueId rate = {});

// Communication between the ranks along a mesh axis. `kind` is sum, max or min.
Result<plan::ValueId> add_all_reduce(plan::Graph& graph, plan::ValueId x, std::string_view axis,
                                     std::string_view kind = "sum");
Result<plan::ValueId> add_reduce_scatter(plan::Graph& graph, plan::ValueId x, std::string_view axis,
                                         Symbol along, std::string_view kind = "sum");
Result<plan::ValueId> add_all_gather(plan::Graph& graph, plan::ValueId x, std::string_view axis,
                                     Symbol along);
Result<plan::ValueId> add_all_to_all(plan::Graph& graph, plan::ValueId x, std::string_view axis, Symbol from,
                                     Symbol to);
Result<plan::ValueId> add_slice_across(plan::Graph& graph, plan::ValueId x, std::string_view axis,
                                       Symbol along);
// To sliced(along, before, after).
Result<plan::ValueId> add_halo(plan::Graph& graph, plan::ValueId x, std::string_view axis, Symbol along,
                               std::int64_t before, std::int64_t after);
Result<plan::ValueId> add_permute_ranks(plan::Graph& graph, plan::ValueId x, std::string_view axis,
                                        std::int64_t by = 1);

}  // namespace weft::ops
