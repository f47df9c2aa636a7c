// weft/translate/imports/onnx_resolver.h -- converts an ONNX graph's nodes to model nodes in order.
//
//   onnx_model.cpp         the walk: sources, operands and results of each node
//   onnx_fold.cpp          constant folding: shapes of shapes, numbers
//   onnx_elementwise.cpp   functions of one or two operands
//   onnx_conditions.cpp    comparisons, Where, casts
//   onnx_layers.cpp        products, convolutions, pools, norms, softmax, lookups
//   onnx_sums.cpp          reductions and Einsum
//   onnx_shapes.cpp        data movement: slices, reshapes, broadcasts
//   onnx_losses.cpp        losses
//
// Included by these only.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/formats/model_form.h"
#include "weft/formats/value.h"
#include "weft/translate/imports/onnx_model.h"

namespace weft::imports {

// Target types of Cast, with their numbers in onnx.proto.
enum class OnnxCast : std::int64_t { f32 = 1, i32 = 6, i64 = 7, boolean = 9, f16 = 10, f64 = 11, bf16 = 16 };
constexpr bool is_real_cast(OnnxCast to) {
  return to == OnnxCast::f32 || to == OnnxCast::f16 || to == OnnxCast::f64 || to == OnnxCast::bf16;
}

class OnnxResolver {
 public:
  using ModelNode = formats::ModelNode;
  using ModelShape = formats::ModelShape;
  using Operation = formats::ModelOperation;

  explicit OnnxResolver(const OnnxGraph& graph) : graph_(graph) {}

  Result<OnnxModel> resolve();

  using Add = Status (OnnxResolver::*)();
  struct Operator {
    std::string_view name;
    Add add;
    std::string_view attributes = {};  // "axis keepdims"
  };
  static const std::vector<Operator>& operators();

 private:
  // A constant: integers that shapes are computed from, or one number.
  struct Folded {
    std::vector<std::int64_t> wholes = {};
    std::optional<double> number = {};
    std::size_t rank = 1;  // 0: a scalar; a Gather with it drops the dim
    bool is_real = false;  // integers cast to floating point: 7 / 2 is 3.5
    bool is_tensor =
        false;  // also a tensor of the model, which may be trained: used only where a constant is required
  };

  // Sources and results. REQUIRES for all below: node_ is the node being added.
  Status add_sources();
  Status add_value(const std::string& name, const ModelShape& shape);
  bool given(std::size_t i) const { return i < node_->inputs.size() && !node_->inputs[i].empty(); }
  Result<std::uint32_t> operand(std::size_t i) const;
  const Folded* known(std::size_t i) const;             // a constant that is not a tensor of the model
  std::optional<double> constant(std::size_t i) const;  // such a constant that is one number
  std::optional<double> number(std::size_t i) const;    // also if it is a tensor of the model
  std::size_t rank_of_constant(std::size_t i) const;
  const ModelShape& shape(std::uint32_t value) const { return model_.file.shape(value); }
  std::int64_t whole(std::string_view key, std::int64_t otherwise) const;
  double real(std::string_view key, double otherwise) const;
  std::vector<std::int64_t> wholes(std::string_view key) const;
  Result<std::size_t> axis(std::int64_t axis, std::size_t rank) const;
  Status add(const OnnxNode& node);
  static Status check_attributes(const OnnxNode& node);
  Status push(ModelNode node, ModelShape result, std::string stem, std::size_t output = 0);
  // Adds an intermediate value that is not in the file.
  Result<std::uint32_t> push_inner(ModelNode node, ModelShape result, std::string stem);
  static ModelNode made(Operation operation, std::vector<std::uint32_t> operands);
  Status alias();
  Status add_outputs();

  // Constant folding.
  // Folds integers and single numbers.
  bool fold(const std::string& name, const OnnxTensor& tensor, bool learns);
  // Folds shapes computed from shapes; they leave nothing in the text.
  bool fold_shapes(const OnnxNode& node);

  bool fold_cast(const OnnxNode& node);
  bool fold_arithmetic(const OnnxNode& node);
  bool fold_numbers(const OnnxNode& node);

  // Functions of one or two operands.
  Status function(std::string_view form, Operation nearest = Operation::relu);
  Status add_relu() { return function("relu({})"); }
  Status add_sigmoid() { return function("sigmoid({})", Operation::sigmoid); }
  Status add_tanh() { return function("tanh({})", Operation::tanh); }
  Status add_erf() { return function("erf({})"); }
  Status add_sqrt() { return function("sqrt({})"); }
  Status add_exp() { return function("exp({})"); }
  Status add_log() { return function("log({})"); }
  Status add_abs() { return function("abs({})"); }
  Status add_sin() { return function("sin({})"); }
  Status add_cos() { return function("cos({})"); }
  Status add_reciprocal() { return function("(1 / {})"); }
  Status add_leaky_relu();
  Status add_softplus() { return function("(relu({}) + log(1 + exp(-abs({}))))"); }
  Status add_hard_sigmoid();
  Status add_hard_swish() { return function("({} * least(greatest({} / 6 + 0.5, 0), 1))"); }
  Status add_clip();
  Status bounded(std::string_view name);
  Status add_max() { return bounded("greatest"); }
  Status add_min() { return bounded("least"); }
  Status add_neg() { return with_number("(-{})"); }
  Status add_gelu();
  // Applies a form with a constant: scale, shift, power.
  Status with_number(std::string form);
  Status add_dropout();
  Status two(Operation operation, std::string_view infix, std::string_view stem);
  static Result<ModelShape> joined_shape(const ModelShape& a, const ModelShape& b);
  Status add_add() { return two(Operation::add, " + ", "sum"); }
  Status add_sub() { return two(Operation::add, " - ", "difference"); }
  Status add_mul() { return two(Operation::mul, " * ", "product"); }
  Status add_div() { return two(Operation::mul, " / ", "quotient"); }
  Status add_pow();

  // Conditions and their uses. Marks the result of the last pushed node as a condition.
  Status condition(Status pushed);
  // The form in which an operand is read as a condition.
  Result<std::string_view> as_condition(std::uint32_t value) const;
  Status add_greater() { return condition(two(Operation::add, " > ", "condition")); }
  Status add_less() { return condition(two(Operation::add, " < ", "condition")); }
  Status add_greater_or_equal() { return condition(two(Operation::add, " >= ", "condition")); }
  Status add_less_or_equal() { return condition(two(Operation::add, " <= ", "condition")); }
  Status add_equal() { return condition(two(Operation::add, " = ", "condition")); }
  Status both(std::string_view infix);
  Status add_and() { return both("AND"); }
  Status add_or() { return both("OR"); }
  Status add_not();
  Status add_where();
  Status add_cast();

  // Products, convolutions, pools, norms.
  Result<std::uint32_t> transposed_weight(std::uint32_t weight);
  Result<ModelShape> product_shape(std::uint32_t a, std::uint32_t b) const;
  Status add_matmul();
  Status add_gemm();
  // Sets kernel, stride and padding of a window; computes the result's height and width.
  Status window(ModelNode& node, std::vector<std::int64_t> kernel, const ModelShape& x, ModelShape& result);
  Status add_conv();
  Status add_conv_transpose();
  Status add_pool(Operation operation, std::string_view stem);
  Status add_max_pool() { return add_pool(Operation::pool_max, "pool"); }
  Status add_avg_pool() { return add_pool(Operation::pool_avg, "pool"); }
  Status add_global_pool();
  Status add_softmax();
  Result<double> epsilon_of() const;
  Status add_layer_norm();
  Status add_batch_norm();
  Status add_gather();
  Status add_one_position(std::uint32_t x, std::int64_t position);

  // Reductions and general products.
  Status reduce(std::string_view function);
  Status add_sum() { return reduce("sum"); }
  Status add_largest() { return reduce("max"); }
  Status add_smallest() { return reduce("min"); }
  // The axes; all of them if none are given. Fails if the axes are not constant.
  Result<std::set<std::size_t>> reduced_axes(std::size_t rank) const;
  Status add_einsum();

  // Functions of WeftQL that refer to indices: onnx_functions.cpp.
  ModelNode labelled(std::vector<std::uint32_t> operands, std::vector<std::vector<std::size_t>> labels,
                     std::string form);
  std::vector<std::size_t> own_labels(std::uint32_t value) const;
  Status number_of(std::uint32_t x);
  Status add_rms_norm();
  Status add_rotary();
  Status add_band();

  // Mixtures of experts: onnx_experts.cpp.
  Status add_top_k();
  Status add_expert_slots();
  Status add_expert_send();
  Status add_expert_mix();
  Result<std::uint32_t> slots(std::size_t i) const;

  // Data movement.
  // x from `begin` to before `end`: the node's output, or an intermediate if `output` is empty.
  Result<std::uint32_t> cut(std::uint32_t x, std::size_t along, std::int64_t begin, std::int64_t end,
                            std::optional<std::size_t> output);
  Status add_slice();
  Status add_split();
  Status add_expand();
  Status reshape_to(ModelShape result);
  Status add_reshape();
  Status add_flatten();
  Status add_unsqueeze();
  Status add_squeeze();
  Status add_transpose();
  Status add_concat();

  // Losses.
  Status add_cross_entropy();
  Status add_mean();
  Status add_loss(std::uint32_t of);

  const OnnxGraph& graph_;
  const OnnxNode* node_ = nullptr;
  OnnxModel model_;
  std::map<std::string, std::uint32_t, std::less<>> at_;
  std::map<std::string, Folded, std::less<>> folded_;
  std::set<std::uint32_t> conditions_;           // boolean values
  std::set<std::uint32_t> stored_;               // boolean inputs and tensors of the file, stored as 1 or 0
  std::set<std::uint32_t> whole_;                // integer values: labels, also reshaped
  std::map<std::uint32_t, std::int64_t> slots_;  // by result of ExpertSlots: the number of slots per b
  std::string loss_;                             // the loss's name in the file
  std::uint32_t loss_of_ = 0;                    // the scores, or the operand of a mean
};

}  // namespace weft::imports
