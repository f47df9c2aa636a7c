// weft/translate/imports/onnx_resolver.h -- the nodes of an ONNX graph, one after the other, as those of a model.
//
//   onnx_model.cpp         the walk: sources, what a node is given, where its result goes
//   onnx_fold.cpp          what is known now and leaves no node: shapes of shapes, numbers
//   onnx_elementwise.cpp   functions of one or two operands
//   onnx_conditions.cpp    comparisons, Where, casts
//   onnx_layers.cpp        products, convolutions, pools, norms, softmax, lookups
//   onnx_sums.cpp          reductions and Einsum
//   onnx_shapes.cpp        what moves, cuts or repeats dims alone
//   onnx_losses.cpp        the number that training makes small
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

// What Cast casts to, as onnx.proto numbers types.
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
  // A value that is known now: whole numbers that shapes are made of, or one number.
  struct Folded {
    std::vector<std::int64_t> wholes = {};
    std::optional<double> number = {};
    std::size_t rank = 1;  // 0: a Gather by it drops the dim
    bool is_real = false;  // whole numbers that were cast: 7 / 2 is 3.5
    bool is_tensor =
        false;  // it is one of the model as well, and may learn: only what must be known reads it
  };

  // Sources and results. REQUIRES of all below: node_ is the one that is added.
  Status add_sources();
  Status add_value(const std::string& name, const ModelShape& shape);
  bool given(std::size_t i) const { return i < node_->inputs.size() && !node_->inputs[i].empty(); }
  Result<std::uint32_t> operand(std::size_t i) const;
  const Folded* known(std::size_t i) const;             // and no tensor of the model
  std::optional<double> constant(std::size_t i) const;  // such a number
  std::optional<double> number(std::size_t i) const;    // also where it is a tensor
  std::size_t rank_of_constant(std::size_t i) const;
  const ModelShape& shape(std::uint32_t value) const { return model_.file.shape(value); }
  std::int64_t whole(std::string_view key, std::int64_t otherwise) const;
  double real(std::string_view key, double otherwise) const;
  std::vector<std::int64_t> wholes(std::string_view key) const;
  Result<std::size_t> axis(std::int64_t axis, std::size_t rank) const;
  Status add(const OnnxNode& node);
  static Status check_attributes(const OnnxNode& node);
  Status push(ModelNode node, ModelShape result, std::string stem, std::size_t output = 0);
  // A value between the nodes of the file.
  Result<std::uint32_t> push_inner(ModelNode node, ModelShape result, std::string stem);
  static ModelNode made(Operation operation, std::vector<std::uint32_t> operands);
  Status alias();
  Status add_outputs();

  // What is known now.
  // Whole numbers, and single numbers, are known now.
  bool fold(const std::string& name, const OnnxTensor& tensor, bool learns);
  // Shapes of shapes: nothing of them is left in the text.
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
  // By a number that is known: scaled, moved, raised.
  Status with_number(std::string form);
  Status add_dropout();
  Status two(Operation operation, std::string_view infix, std::string_view stem);
  static Result<ModelShape> joined_shape(const ModelShape& a, const ModelShape& b);
  Status add_add() { return two(Operation::add, " + ", "sum"); }
  Status add_sub() { return two(Operation::add, " - ", "difference"); }
  Status add_mul() { return two(Operation::mul, " * ", "product"); }
  Status add_div() { return two(Operation::mul, " / ", "quotient"); }
  Status add_pow();

  // Conditions, and what depends on them. The result of the node that was pushed last is one.
  Status condition(Status pushed);
  // How a form reads the operand as a condition.
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
  Result<std::uint32_t> turned_weight(std::uint32_t weight);
  Result<ModelShape> product_shape(std::uint32_t a, std::uint32_t b) const;
  Status add_matmul();
  Status add_gemm();
  // Kernel, stride and padding of a window; the result's height and width.
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

  // Reductions and products of all kinds.
  Status reduce(std::string_view function);
  Status add_sum() { return reduce("sum"); }
  Status add_largest() { return reduce("max"); }
  Status add_smallest() { return reduce("min"); }
  // Fails where there are axes that are not known; all of them where none is named.
  Result<std::set<std::size_t>> reduced_axes(std::size_t rank) const;
  Status add_einsum();

  // Dims that are moved, cut and repeated.
  // x from `begin` to before `end`, as the node's output or, without one, between the nodes of the file.
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

  // What training makes small.
  Status add_cross_entropy();
  Status add_mean();
  Status add_loss(std::uint32_t of);

  const OnnxGraph& graph_;
  const OnnxNode* node_ = nullptr;
  OnnxModel model_;
  std::map<std::string, std::uint32_t, std::less<>> at_;
  std::map<std::string, Folded, std::less<>> folded_;
  std::set<std::uint32_t> conditions_;  // values that are true or false
  std::set<std::uint32_t> stored_;      // inputs and tensors that the file has as true or false: 1 or 0
  std::set<std::uint32_t> whole_;       // values of whole numbers: labels, as they are and reshaped
  std::string loss_;                    // what the file calls it
  std::uint32_t loss_of_ = 0;           // scores, or what a mean is taken of
};

}  // namespace weft::imports
