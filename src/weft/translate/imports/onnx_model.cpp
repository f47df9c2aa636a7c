#include "weft/translate/imports/onnx_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {
namespace {

constexpr std::int64_t kMostOnnxElements = std::int64_t{1} << 50;

std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

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
      return user_error(fmt::format("output {} is not computed by any node", formats::shown(output)));
    model_.file.outputs.push_back(found->second);
  }
  if (model_.file.outputs.empty()) return user_error("expected outputs, found none");
  return {};
}

Status OnnxResolver::add_sources() {
  formats::ModelFile& file = model_.file;
  // The sources of positions and labels, traced through casts and reshapes.
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
          fmt::format("{} has the symbolic dim {}: set to 1", formats::shown(input.name), open));
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
    if (!fold(tensor.name, tensor, true)) WEFT_TRY_STATUS(add_tensor(tensor.name, tensor, true));
  // Constants with more than one element are not trained.
  for (const OnnxNode& node : graph_.nodes) {
    const auto value = node.attributes.find("value");
    if (node.operation != "Constant" || value == node.attributes.end() || node.outputs.empty()) continue;
    if (fold(node.outputs.front(), value->second.tensor, false)) continue;
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
    return user_error(fmt::format("operand {} is '{}', which no earlier node computes", i,
                                  formats::shown(node_->inputs[i])));
  return found->second;
}

const OnnxResolver::Folded* OnnxResolver::known(std::size_t i) const {
  if (!given(i)) return nullptr;
  const auto found = folded_.find(node_->inputs[i]);
  return found == folded_.end() || found->second.is_tensor ? nullptr : &found->second;
}

std::optional<double> OnnxResolver::constant(std::size_t i) const {
  const Folded* value = known(i);
  return value != nullptr ? value->number : std::nullopt;
}

std::optional<double> OnnxResolver::number(std::size_t i) const {
  if (!given(i)) return std::nullopt;
  const auto found = folded_.find(node_->inputs[i]);
  return found == folded_.end() ? std::nullopt : found->second.number;
}

std::size_t OnnxResolver::rank_of_constant(std::size_t i) const {
  const Folded* value = known(i);
  return value != nullptr && value->number ? value->rank : 0;
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
    WEFT_TRY_STATUS(check_attributes(node));
    if (at_.contains(node.outputs.front()) || folded_.contains(node.outputs.front())) return {};
    Folded& made = folded_[node.outputs.front()];
    if (const auto ints = wholes("value_ints"); !ints.empty())
      made = {.wholes = ints,
              .number = ints.size() == 1 ? std::optional(static_cast<double>(ints[0])) : std::nullopt};
    else if (node.attributes.contains("value_int"))
      made = {
          .wholes = {whole("value_int", 0)}, .number = static_cast<double>(whole("value_int", 0)), .rank = 0};
    else if (node.attributes.contains("value_float"))
      made = {.number = real("value_float", 0), .rank = 0, .is_real = true};
    else
      return user_error("expected a value of numbers, found none");
    return {};
  }
  WEFT_TRY_STATUS(check_attributes(node));
  if (fold_shapes(node)) return {};
  const auto& known_operators = operators();
  const auto found = std::ranges::find(known_operators, node.operation, &Operator::name);
  if (found == known_operators.end()) {
    const auto names = onnx_operators();
    const std::string hint = did_you_mean(node.operation, names);
    return user_error("unknown operator",
                      hint.empty() ? fmt::format("known are {}", fmt::join(names, ", ")) : hint);
  }
  // Integers may only be looked up or compared; no arithmetic is supported on them.
  const bool takes_wholes = node.operation == "Gather" || node.operation == "SoftmaxCrossEntropyLoss" ||
                            node.operation == "Cast" || node.operation == "Identity" ||
                            node.operation.starts_with("weft.Expert");
  for (const std::string& input : node.inputs)
    if (const auto value = at_.find(input); value != at_.end() && !takes_wholes)
      if (model_.positions.contains(value->second) ||
          (whole_.contains(value->second) && !moves_dims(node.operation)))
        return user_error(
            fmt::format("{} is an integer input: only Gather and losses support it", formats::shown(input)));
  return (this->*found->add)();
}

// Without this check, an unsupported attribute or one of another kind would be ignored silently.
Status OnnxResolver::check_attributes(const OnnxNode& node) {
  struct Attribute {
    std::string_view name;
    OnnxKind kind;
  };
  using enum OnnxKind;
  constexpr Attribute kAttributes[] = {{"allowzero", whole},
                                       {"alpha", number},
                                       {"approximate", word},
                                       {"auto_pad", word},
                                       {"axes", wholes},
                                       {"axis", whole},
                                       {"base", number},
                                       {"beta", number},
                                       {"capacity", whole},
                                       {"ceil_mode", whole},
                                       {"count_include_pad", whole},
                                       {"dilations", wholes},
                                       {"end", whole},
                                       {"epsilon", number},
                                       {"equation", word},
                                       {"experts", whole},
                                       {"group", whole},
                                       {"highest", whole},
                                       {"ignore_index", whole},
                                       {"keepdims", whole},
                                       {"kernel_shape", wholes},
                                       {"largest", whole},
                                       {"lowest", whole},
                                       {"momentum", number},
                                       {"noop_with_empty_axes", whole},
                                       {"num_outputs", whole},
                                       {"output_padding", wholes},
                                       {"output_shape", wholes},
                                       {"pads", wholes},
                                       {"perm", wholes},
                                       {"reduction", word},
                                       {"saturate", whole},
                                       {"seed", whole},
                                       {"sorted", whole},
                                       {"start", whole},
                                       {"stash_type", whole},
                                       {"storage_order", whole},
                                       {"strides", wholes},
                                       {"to", whole},
                                       {"training_mode", whole},
                                       {"transA", whole},
                                       {"transB", whole},
                                       {"value", tensor},
                                       {"value_float", number},
                                       {"value_int", whole},
                                       {"value_ints", wholes}};
  constexpr std::pair<std::string_view, std::string_view> kFoldedOnly[] = {
      {"Constant", "value value_float value_int value_ints"},
      {"ConstantOfShape", "value"},
      {"ReduceProd", "axes keepdims noop_with_empty_axes"},
      {"Shape", "start end"}};
  constexpr std::string_view kKinds[] = {"nothing",  "a whole number",          "a number",      "a word",
                                         "a tensor", "a list of whole numbers", "something else"};
  std::optional<std::string_view> list;
  if (const auto found = std::ranges::find(operators(), node.operation, &Operator::name);
      found != operators().end())
    list = found->attributes;
  for (const auto& [name, attributes] : kFoldedOnly)
    if (name == node.operation) list = attributes;
  if (!list) return {};
  const std::vector<std::string_view> names = words_of(*list);
  for (const auto& [name, attribute] : node.attributes) {
    if (std::ranges::find(names, name) == names.end()) {
      const std::string hint = did_you_mean(name, names);
      return user_error(fmt::format("unknown attribute: {}", formats::shown(name)),
                        !hint.empty()   ? hint
                        : names.empty() ? "it has none"
                                        : fmt::format("known are {}", fmt::join(names, ", ")));
    }
    const auto found = std::ranges::find(kAttributes, name, &Attribute::name);
    WEFT_CHECK(found != std::end(kAttributes), "an operator's list has an attribute without a kind");
    const OnnxKind kind = found->kind;
    if (attribute.kind != none && attribute.kind != kind)
      return user_error(fmt::format("{}: expected {}, found {}", name, kKinds[static_cast<std::size_t>(kind)],
                                    kKinds[static_cast<std::size_t>(attribute.kind)]));
  }
  return {};
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
      {"AveragePool", &OnnxResolver::add_avg_pool,
       "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"},
      {"BatchNormalization", &OnnxResolver::add_batch_norm, "epsilon momentum training_mode"},
      {"Cast", &OnnxResolver::add_cast, "saturate to"},
      {"Clip", &OnnxResolver::add_clip},
      {"Concat", &OnnxResolver::add_concat, "axis"},
      {"Conv", &OnnxResolver::add_conv, "auto_pad dilations group kernel_shape pads strides"},
      {"ConvTranspose", &OnnxResolver::add_conv_transpose,
       "auto_pad dilations group kernel_shape output_padding output_shape pads strides"},
      {"Cos", &OnnxResolver::add_cos},
      {"Div", &OnnxResolver::add_div},
      {"Dropout", &OnnxResolver::add_dropout, "seed"},
      {"Einsum", &OnnxResolver::add_einsum, "equation"},
      {"Equal", &OnnxResolver::add_equal},
      {"Erf", &OnnxResolver::add_erf},
      {"Exp", &OnnxResolver::add_exp},
      {"Expand", &OnnxResolver::add_expand},
      {"Flatten", &OnnxResolver::add_flatten, "axis"},
      {"Gather", &OnnxResolver::add_gather, "axis"},
      {"Gelu", &OnnxResolver::add_gelu, "approximate"},
      {"Gemm", &OnnxResolver::add_gemm, "alpha beta transA transB"},
      {"GlobalAveragePool", &OnnxResolver::add_global_pool},
      {"Greater", &OnnxResolver::add_greater},
      {"GreaterOrEqual", &OnnxResolver::add_greater_or_equal},
      {"HardSigmoid", &OnnxResolver::add_hard_sigmoid, "alpha beta"},
      {"HardSwish", &OnnxResolver::add_hard_swish},
      {"Identity", &OnnxResolver::alias},
      {"LayerNormalization", &OnnxResolver::add_layer_norm, "axis epsilon stash_type"},
      {"LeakyRelu", &OnnxResolver::add_leaky_relu, "alpha"},
      {"Less", &OnnxResolver::add_less},
      {"LessOrEqual", &OnnxResolver::add_less_or_equal},
      {"Log", &OnnxResolver::add_log},
      {"MatMul", &OnnxResolver::add_matmul},
      {"Max", &OnnxResolver::add_max},
      {"MaxPool", &OnnxResolver::add_max_pool,
       "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"},
      {"Min", &OnnxResolver::add_min},
      {"Mul", &OnnxResolver::add_mul},
      {"Neg", &OnnxResolver::add_neg},
      {"Not", &OnnxResolver::add_not},
      {"Or", &OnnxResolver::add_or},
      {"Pow", &OnnxResolver::add_pow},
      {"RMSNormalization", &OnnxResolver::add_rms_norm, "axis epsilon stash_type"},
      {"Reciprocal", &OnnxResolver::add_reciprocal},
      {"ReduceMax", &OnnxResolver::add_largest, "axes keepdims noop_with_empty_axes"},
      {"ReduceMean", &OnnxResolver::add_mean, "axes keepdims noop_with_empty_axes"},
      {"ReduceMin", &OnnxResolver::add_smallest, "axes keepdims noop_with_empty_axes"},
      {"ReduceSum", &OnnxResolver::add_sum, "axes keepdims noop_with_empty_axes"},
      {"Relu", &OnnxResolver::add_relu},
      {"Reshape", &OnnxResolver::add_reshape, "allowzero"},
      {"Sigmoid", &OnnxResolver::add_sigmoid},
      {"Sin", &OnnxResolver::add_sin},
      {"Slice", &OnnxResolver::add_slice},
      {"Softmax", &OnnxResolver::add_softmax, "axis"},
      {"SoftmaxCrossEntropyLoss", &OnnxResolver::add_cross_entropy, "ignore_index reduction"},
      {"Softplus", &OnnxResolver::add_softplus},
      {"Split", &OnnxResolver::add_split, "axis num_outputs"},
      {"Sqrt", &OnnxResolver::add_sqrt},
      {"Squeeze", &OnnxResolver::add_squeeze},
      {"Sub", &OnnxResolver::add_sub},
      {"Tanh", &OnnxResolver::add_tanh},
      {"TopK", &OnnxResolver::add_top_k, "axis largest sorted"},
      {"Transpose", &OnnxResolver::add_transpose, "perm"},
      {"Unsqueeze", &OnnxResolver::add_unsqueeze},
      {"Where", &OnnxResolver::add_where},
      {"weft.Band", &OnnxResolver::add_band, "highest lowest"},
      {"weft.ExpertMix", &OnnxResolver::add_expert_mix},
      {"weft.ExpertSend", &OnnxResolver::add_expert_send},
      {"weft.ExpertSlots", &OnnxResolver::add_expert_slots, "capacity experts"},
      {"weft.Rotary", &OnnxResolver::add_rotary, "base"}};
  return kOperators;
}

std::vector<std::string_view> onnx_operators() {
  std::vector<std::string_view> names;
  for (const auto& known : OnnxResolver::operators()) names.push_back(known.name);
  return names;
}

Result<OnnxModel> resolve_onnx(const OnnxGraph& graph) { return OnnxResolver(graph).resolve(); }

}  // namespace weft::imports
