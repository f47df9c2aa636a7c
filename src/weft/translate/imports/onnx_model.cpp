#include "weft/translate/imports/onnx_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {
namespace {

constexpr std::int64_t kMostOnnxElements = std::int64_t{1} << 50;

bool moves_dims(std::string_view operation) {
  return operation == "Reshape" || operation == "Flatten" || operation == "Squeeze" ||
         operation == "Unsqueeze";
}

}  // namespace

Result<OnnxModel> OnnxResolver::resolve() {
  model_.file.name = graph_.name;
  WEFT_TRY_STATUS(add_sources());
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    node_ = &graph_.nodes[n];
    Status added = add(*node_);
    if (!added.ok()) {
      Error error = std::move(added).error();
      error.message = fmt::format("node {} ({} '{}'): {}", n, formats::shown(node_->operation),
                                  formats::shown(node_->name), error.message);
      return error;
    }
  }
  WEFT_TRY_STATUS(add_outputs());
  return std::move(model_);
}

Status OnnxResolver::add_outputs() {
  if (!loss_.empty()) {
    if (graph_.outputs != std::vector<std::string>{loss_})
      return user_error(fmt::format("expected the loss {} as the only output, found {}",
                                    formats::shown(loss_), graph_.outputs.size()));
    model_.file.outputs.push_back(loss_of_);
    return {};
  }
  for (const std::string& output : graph_.outputs) {
    const auto found = at_.find(output);
    if (found == at_.end())
      return user_error(fmt::format("output {} is no value that is computed", formats::shown(output)));
    model_.file.outputs.push_back(found->second);
  }
  if (model_.file.outputs.empty()) return user_error("expected outputs, found none");
  return {};
}

Status OnnxResolver::add_sources() {
  formats::ModelFile& file = model_.file;
  // What positions and labels are made of: casts and reshapes pass them on.
  std::set<std::string, std::less<>> looked_up, labels;
  for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
    const OnnxNode& node = graph_.nodes[n];
    if (node.operation == "Gather" && node.inputs.size() == 2) looked_up.insert(node.inputs[1]);
    if (node.operation == "SoftmaxCrossEntropyLoss" && node.inputs.size() > 1) labels.insert(node.inputs[1]);
    const bool same = node.operation == "Cast" || node.operation == "Identity";
    if (node.inputs.empty() || node.outputs.empty() || !(same || moves_dims(node.operation))) continue;
    if (same && looked_up.contains(node.outputs[0])) looked_up.insert(node.inputs[0]);
    if (labels.contains(node.outputs[0])) labels.insert(node.inputs[0]);
  }
  for (const OnnxValue& input : graph_.inputs) {
    ModelShape shape = input.shape;
    for (std::int64_t& dim : shape)
      if (dim == 0) dim = 1;
    for (const std::string& open : input.open)
      model_.notes.push_back(
          fmt::format("{} leaves the dim {} open: it is 1 here", formats::shown(input.name), open));
    const auto value = static_cast<std::uint32_t>(file.values.size());
    const bool whole = input.dtype == plan::DType::i64 || input.dtype == plan::DType::i32;
    if (whole && !looked_up.contains(input.name) && !labels.contains(input.name))
      return user_error(
          fmt::format("input {}: expected floating point, positions that Gather takes, or labels of a loss",
                      formats::shown(input.name)));
    if (whole && looked_up.contains(input.name)) {
      shape.push_back(1);
      model_.positions.insert(value);
    } else if (whole) {
      model_.labels.insert(value);
      whole_.insert(value);
    }
    if (input.dtype == plan::DType::boolean) stored_.insert(value);
    WEFT_TRY_STATUS(add_value(input.name, shape));
  }
  file.inputs = static_cast<std::uint32_t>(file.values.size());
  const auto add_tensor = [&](const std::string& name, const OnnxTensor& tensor, bool learns) {
    const auto value = static_cast<std::uint32_t>(file.values.size());
    if (tensor.dtype == plan::DType::boolean) stored_.insert(value);
    if (!learns || tensor.dtype == plan::DType::boolean) model_.states.insert(value);
    return add_value(name, tensor.shape);
  };
  for (const OnnxTensor& tensor : graph_.tensors)
    if (!fold(tensor.name, tensor)) WEFT_TRY_STATUS(add_tensor(tensor.name, tensor, true));
  // Constants that are more than one number do not learn.
  for (const OnnxNode& node : graph_.nodes) {
    const auto value = node.attributes.find("value");
    if (node.operation != "Constant" || value == node.attributes.end() || node.outputs.empty()) continue;
    if (fold(node.outputs.front(), value->second.tensor)) continue;
    WEFT_TRY_STATUS(add_tensor(node.outputs.front(), value->second.tensor, false));
  }
  file.weights = static_cast<std::uint32_t>(file.values.size()) - file.inputs;
  return {};
}

Status OnnxResolver::add_value(const std::string& name, const ModelShape& shape) {
  formats::ModelFile& file = model_.file;
  if (file.values.size() >= formats::kMostModelValues)
    return user_error(fmt::format("expected at most {} values, found more", formats::kMostModelValues));
  if (shape.size() > formats::kMostModelRank)
    return user_error(fmt::format("{}: expected at most {} dims, found {}", formats::shown(name),
                                  formats::kMostModelRank, shape.size()));
  std::int64_t elements = 1;
  for (const std::int64_t size : shape)
    if (size < 1 || size > formats::kMostModelSize || __builtin_mul_overflow(elements, size, &elements) ||
        elements > kMostOnnxElements)
      return user_error(fmt::format("{}: expected dims from 1 to {}, found {}", formats::shown(name),
                                    formats::kMostModelSize, size));
  if (!at_.emplace(name, static_cast<std::uint32_t>(file.values.size())).second)
    return user_error(fmt::format("{} is computed twice", formats::shown(name)));
  file.values.push_back({name, shape});
  return {};
}

Result<std::uint32_t> OnnxResolver::operand(std::size_t i) const {
  if (!given(i)) return user_error(fmt::format("expected operand {}, found none", i));
  const auto found = at_.find(node_->inputs[i]);
  if (found == at_.end())
    return user_error(fmt::format("operand {} is '{}', which is no tensor that is computed before", i,
                                  formats::shown(node_->inputs[i])));
  return found->second;
}

const OnnxResolver::Folded* OnnxResolver::known(std::size_t i) const {
  if (!given(i)) return nullptr;
  const auto found = folded_.find(node_->inputs[i]);
  return found == folded_.end() ? nullptr : &found->second;
}

std::optional<double> OnnxResolver::number(std::size_t i) const {
  const Folded* value = known(i);
  return value != nullptr ? value->number : std::nullopt;
}

std::int64_t OnnxResolver::whole(std::string_view key, std::int64_t otherwise) const {
  const auto found = node_->attributes.find(key);
  return found == node_->attributes.end() ? otherwise : found->second.whole;
}

double OnnxResolver::real(std::string_view key, double otherwise) const {
  const auto found = node_->attributes.find(key);
  return found == node_->attributes.end() ? otherwise : found->second.number;
}

std::vector<std::int64_t> OnnxResolver::wholes(std::string_view key) const {
  const auto found = node_->attributes.find(key);
  return found == node_->attributes.end() ? std::vector<std::int64_t>() : found->second.wholes;
}

Result<std::size_t> OnnxResolver::axis(std::int64_t axis, std::size_t rank) const {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size)
    return user_error(fmt::format("expected an axis of {} dims, found {}", rank, axis));
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

Status OnnxResolver::add(const OnnxNode& node) {
  if (node.outputs.empty()) return user_error("expected an output, found none");
  if (node.operation == "Constant") {
    if (at_.contains(node.outputs.front()) || folded_.contains(node.outputs.front())) return {};
    if (const auto ints = wholes("value_ints"); !ints.empty())
      folded_[node.outputs.front()].wholes = ints;
    else if (node.attributes.contains("value_int"))
      folded_[node.outputs.front()] = {{whole("value_int", 0)}, static_cast<double>(whole("value_int", 0))};
    else if (node.attributes.contains("value_float"))
      folded_[node.outputs.front()].number = real("value_float", 0);
    else
      return user_error("expected a value of numbers, found none");
    return {};
  }
  if (fold_shapes(node)) return {};
  const auto& known_operators = operators();
  const auto found = std::ranges::find(known_operators, node.operation, &Operator::name);
  if (found == known_operators.end()) {
    const auto names = onnx_operators();
    const std::string hint = did_you_mean(node.operation, names);
    return user_error("unknown operator",
                      hint.empty() ? fmt::format("known are {}", fmt::join(names, ", ")) : hint);
  }
  // Whole numbers are looked up or compared with, and nothing is computed of them.
  const bool takes_wholes = node.operation == "Gather" || node.operation == "SoftmaxCrossEntropyLoss" ||
                            node.operation == "Cast" || node.operation == "Identity";
  for (const std::string& input : node.inputs)
    if (const auto value = at_.find(input); value != at_.end() && !takes_wholes)
      if (model_.positions.contains(value->second) ||
          (whole_.contains(value->second) && !moves_dims(node.operation)))
        return user_error(fmt::format("{} has whole numbers: positions of Gather, or labels of a loss",
                                      formats::shown(input)));
  return (this->*found->add)();
}

Status OnnxResolver::push(ModelNode node, ModelShape result, std::string stem, std::size_t output) {
  model_.file.nodes.push_back(std::move(node));
  model_.stems.push_back(std::move(stem));
  WEFT_TRY_STATUS(add_value(node_->outputs[output], result));
  return formats::check_form(model_.file, model_.file.nodes.size() - 1);
}

Result<std::uint32_t> OnnxResolver::push_inner(ModelNode node, ModelShape result, std::string stem) {
  model_.file.nodes.push_back(std::move(node));
  model_.stems.push_back(std::move(stem));
  const auto value = static_cast<std::uint32_t>(model_.file.values.size());
  WEFT_TRY_STATUS(add_value(fmt::format("{} of {}", model_.file.nodes.size(), node_->outputs[0]), result));
  WEFT_TRY_STATUS(formats::check_form(model_.file, model_.file.nodes.size() - 1));
  return value;
}

OnnxResolver::ModelNode OnnxResolver::made(Operation operation, std::vector<std::uint32_t> operands) {
  ModelNode node;
  node.operation = operation;
  node.operands = std::move(operands);
  return node;
}

Status OnnxResolver::alias() {
  if (const Folded* value = known(0)) {
    folded_[node_->outputs[0]] = *value;
    return {};
  }
  if (!loss_.empty() && given(0) && node_->inputs[0] == loss_) {
    loss_ = node_->outputs[0];
    return {};
  }
  WEFT_TRY(x, operand(0));
  if (!at_.emplace(node_->outputs[0], x).second) return user_error("the output is computed twice");
  return {};
}

const std::vector<OnnxResolver::Operator>& OnnxResolver::operators() {
  static const std::vector<Operator> kOperators = {
      {"Abs", &OnnxResolver::add_abs},
      {"Add", &OnnxResolver::add_add},
      {"And", &OnnxResolver::add_and},
      {"AveragePool", &OnnxResolver::add_avg_pool},
      {"BatchNormalization", &OnnxResolver::add_batch_norm},
      {"Cast", &OnnxResolver::add_cast},
      {"Clip", &OnnxResolver::add_clip},
      {"Concat", &OnnxResolver::add_concat},
      {"Conv", &OnnxResolver::add_conv},
      {"ConvTranspose", &OnnxResolver::add_conv_transpose},
      {"Cos", &OnnxResolver::add_cos},
      {"Div", &OnnxResolver::add_div},
      {"Dropout", &OnnxResolver::alias},
      {"Einsum", &OnnxResolver::add_einsum},
      {"Equal", &OnnxResolver::add_equal},
      {"Erf", &OnnxResolver::add_erf},
      {"Exp", &OnnxResolver::add_exp},
      {"Expand", &OnnxResolver::add_expand},
      {"Flatten", &OnnxResolver::add_flatten},
      {"Gather", &OnnxResolver::add_gather},
      {"Gelu", &OnnxResolver::add_gelu},
      {"Gemm", &OnnxResolver::add_gemm},
      {"GlobalAveragePool", &OnnxResolver::add_global_pool},
      {"Greater", &OnnxResolver::add_greater},
      {"GreaterOrEqual", &OnnxResolver::add_greater_or_equal},
      {"HardSigmoid", &OnnxResolver::add_hard_sigmoid},
      {"HardSwish", &OnnxResolver::add_hard_swish},
      {"Identity", &OnnxResolver::alias},
      {"LayerNormalization", &OnnxResolver::add_layer_norm},
      {"LeakyRelu", &OnnxResolver::add_leaky_relu},
      {"Less", &OnnxResolver::add_less},
      {"LessOrEqual", &OnnxResolver::add_less_or_equal},
      {"Log", &OnnxResolver::add_log},
      {"MatMul", &OnnxResolver::add_matmul},
      {"Max", &OnnxResolver::add_max},
      {"MaxPool", &OnnxResolver::add_max_pool},
      {"Min", &OnnxResolver::add_min},
      {"Mul", &OnnxResolver::add_mul},
      {"Neg", &OnnxResolver::add_neg},
      {"Not", &OnnxResolver::add_not},
      {"Or", &OnnxResolver::add_or},
      {"Pow", &OnnxResolver::add_pow},
      {"Reciprocal", &OnnxResolver::add_reciprocal},
      {"ReduceMax", &OnnxResolver::add_largest},
      {"ReduceMean", &OnnxResolver::add_mean},
      {"ReduceMin", &OnnxResolver::add_smallest},
      {"ReduceSum", &OnnxResolver::add_sum},
      {"Relu", &OnnxResolver::add_relu},
      {"Reshape", &OnnxResolver::add_reshape},
      {"Sigmoid", &OnnxResolver::add_sigmoid},
      {"Sin", &OnnxResolver::add_sin},
      {"Slice", &OnnxResolver::add_slice},
      {"Softmax", &OnnxResolver::add_softmax},
      {"SoftmaxCrossEntropyLoss", &OnnxResolver::add_cross_entropy},
      {"Softplus", &OnnxResolver::add_softplus},
      {"Split", &OnnxResolver::add_split},
      {"Sqrt", &OnnxResolver::add_sqrt},
      {"Squeeze", &OnnxResolver::add_squeeze},
      {"Sub", &OnnxResolver::add_sub},
      {"Tanh", &OnnxResolver::add_tanh},
      {"Transpose", &OnnxResolver::add_transpose},
      {"Unsqueeze", &OnnxResolver::add_unsqueeze},
      {"Where", &OnnxResolver::add_where}};
  return kOperators;
}

std::vector<std::string_view> onnx_operators() {
  std::vector<std::string_view> names;
  for (const auto& known : OnnxResolver::operators()) names.push_back(known.name);
  return names;
}

Result<OnnxModel> resolve_onnx(const OnnxGraph& graph) { return OnnxResolver(graph).resolve(); }

}  // namespace weft::imports
