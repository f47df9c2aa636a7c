#include "weft/imports/onnx_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/formats/model_form.h"
#include "weft/formats/value.h"

namespace weft::imports {
namespace {

using formats::ModelNode;
using formats::ModelOperation;
using formats::ModelShape;
using Operation = ModelOperation;

constexpr std::int64_t kMostOnnxElements = std::int64_t{1} << 50;

// A value that is known now: whole numbers that shapes are made of, or one number.
struct Folded {
  std::vector<std::int64_t> wholes;
  std::optional<double> number;
};

template <class T>
std::vector<T> elements_of(const OnnxTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(T));
  return values;
}

class OnnxResolver {
 public:
  explicit OnnxResolver(const OnnxGraph& graph) : graph_(graph) {}

  Result<OnnxModel> resolve() {
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
    for (const std::string& output : graph_.outputs) {
      const auto found = at_.find(output);
      if (found == at_.end())
        return user_error(fmt::format("output {} is no value that is computed", formats::shown(output)));
      model_.file.outputs.push_back(found->second);
    }
    if (model_.file.outputs.empty()) return user_error("expected outputs, found none");
    return std::move(model_);
  }

  using Add = Status (OnnxResolver::*)();
  struct Operator {
    std::string_view name;
    Add add;
  };
  static const std::vector<Operator>& operators();

 private:
  // -- sources -----------------------------------------------------------------------------------

  Status add_sources() {
    formats::ModelFile& file = model_.file;
    std::set<std::string, std::less<>> looked_up;
    for (const OnnxNode& node : graph_.nodes)
      if (node.operation == "Gather" && node.inputs.size() == 2) looked_up.insert(node.inputs[1]);
    for (const OnnxValue& input : graph_.inputs) {
      ModelShape shape = input.shape;
      for (std::int64_t& dim : shape)
        if (dim == 0) dim = 1;
      for (const std::string& open : input.open)
        model_.notes.push_back(
            fmt::format("{} leaves the dim {} open: it is 1 here", formats::shown(input.name), open));
      const auto value = static_cast<std::uint32_t>(file.values.size());
      const bool whole = input.dtype == plan::DType::i64 || input.dtype == plan::DType::i32;
      if (whole && !looked_up.contains(input.name))
        return user_error(fmt::format("input {}: expected floating point, or positions that Gather takes",
                                      formats::shown(input.name)));
      if (whole) {
        shape.push_back(1);
        model_.positions.insert(value);
      }
      WEFT_TRY_STATUS(add_value(input.name, shape));
    }
    file.inputs = static_cast<std::uint32_t>(file.values.size());
    for (const OnnxTensor& tensor : graph_.tensors)
      if (!fold(tensor.name, tensor)) WEFT_TRY_STATUS(add_value(tensor.name, tensor.shape));
    // Constants that are more than one number do not learn.
    for (const OnnxNode& node : graph_.nodes) {
      const auto value = node.attributes.find("value");
      if (node.operation != "Constant" || value == node.attributes.end() || node.outputs.empty()) continue;
      if (fold(node.outputs.front(), value->second.tensor)) continue;
      model_.states.insert(static_cast<std::uint32_t>(file.values.size()));
      WEFT_TRY_STATUS(add_value(node.outputs.front(), value->second.tensor.shape));
    }
    file.weights = static_cast<std::uint32_t>(file.values.size()) - file.inputs;
    return {};
  }

  Status add_value(const std::string& name, const ModelShape& shape) {
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

  // Whole numbers, and single numbers, are known now.
  bool fold(const std::string& name, const OnnxTensor& tensor) {
    if (tensor.bytes.empty() && !tensor.location.empty()) return false;
    if (tensor.dtype == plan::DType::i64) {
      folded_[name].wholes = elements_of<std::int64_t>(tensor);
    } else if (tensor.dtype == plan::DType::i32) {
      const auto values = elements_of<std::int32_t>(tensor);
      folded_[name].wholes.assign(values.begin(), values.end());
    } else if (tensor.dtype == plan::DType::f32 && tensor.bytes.size() == sizeof(float)) {
      folded_[name].number = as_written(elements_of<float>(tensor).front());
    } else {
      return false;
    }
    Folded& made = folded_[name];
    if (made.wholes.size() == 1 && !made.number) made.number = static_cast<double>(made.wholes.front());
    return true;
  }

  // -- what a node is given -----------------------------------------------------------------------

  bool given(std::size_t i) const { return i < node_->inputs.size() && !node_->inputs[i].empty(); }

  Result<std::uint32_t> operand(std::size_t i) const {
    if (!given(i)) return user_error(fmt::format("expected operand {}, found none", i));
    const auto found = at_.find(node_->inputs[i]);
    if (found == at_.end())
      return user_error(fmt::format("operand {} is '{}', which is no tensor that is computed before", i,
                                    formats::shown(node_->inputs[i])));
    return found->second;
  }
  const Folded* known(std::size_t i) const {
    if (!given(i)) return nullptr;
    const auto found = folded_.find(node_->inputs[i]);
    return found == folded_.end() ? nullptr : &found->second;
  }
  std::optional<double> number(std::size_t i) const {
    const Folded* value = known(i);
    return value != nullptr ? value->number : std::nullopt;
  }
  const ModelShape& shape(std::uint32_t value) const { return model_.file.shape(value); }

  std::int64_t whole(std::string_view key, std::int64_t otherwise) const {
    const auto found = node_->attributes.find(key);
    return found == node_->attributes.end() ? otherwise : found->second.whole;
  }
  double real(std::string_view key, double otherwise) const {
    const auto found = node_->attributes.find(key);
    return found == node_->attributes.end() ? otherwise : found->second.number;
  }
  std::vector<std::int64_t> wholes(std::string_view key) const {
    const auto found = node_->attributes.find(key);
    return found == node_->attributes.end() ? std::vector<std::int64_t>() : found->second.wholes;
  }
  Result<std::size_t> axis(std::int64_t axis, std::size_t rank) const {
    const auto size = static_cast<std::int64_t>(rank);
    if (axis < -size || axis >= size)
      return user_error(fmt::format("expected an axis of {} dims, found {}", rank, axis));
    return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
  }

  // -- nodes --------------------------------------------------------------------------------------

  Status add(const OnnxNode& node) {
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
    return (this->*found->add)();
  }

  // Shapes of shapes: nothing of them is left in the text.
  bool fold_shapes(const OnnxNode& node) {
    const std::string& to = node.outputs.front();
    if (node.operation == "Shape" && given(0) && at_.contains(node.inputs[0])) {
      const std::uint32_t value = at_.find(node.inputs[0])->second;
      folded_[to].wholes = shape(value);
      if (model_.positions.contains(value)) folded_[to].wholes.pop_back();
      return true;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (known(i) == nullptr) return false;
    if (node.inputs.empty()) return false;
    const auto& first = known(0)->wholes;
    if (node.operation == "Cast" || node.operation == "Unsqueeze" || node.operation == "Squeeze" ||
        node.operation == "Identity") {
      folded_[to] = *known(0);
      return true;
    }
    if (node.operation == "Concat") {
      std::vector<std::int64_t> all;
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        all.insert(all.end(), known(i)->wholes.begin(), known(i)->wholes.end());
      folded_[to] = {all, all.size() == 1 ? std::optional(static_cast<double>(all[0])) : std::nullopt};
      return true;
    }
    if (node.operation == "Gather" && known(1)->wholes.size() == 1) {
      std::int64_t place = known(1)->wholes.front();
      const auto size = static_cast<std::int64_t>(first.size());
      if (place < 0) place += size;
      if (place < 0 || place >= size) return false;
      const std::int64_t value = first[static_cast<std::size_t>(place)];
      folded_[to] = {{value}, static_cast<double>(value)};
      return true;
    }
    return false;
  }

  Status push(ModelNode node, ModelShape result, std::string stem, std::size_t output = 0) {
    model_.file.nodes.push_back(std::move(node));
    model_.stems.push_back(std::move(stem));
    WEFT_TRY_STATUS(add_value(node_->outputs[output], result));
    return formats::check_form(model_.file, model_.file.nodes.size() - 1);
  }

  // A value between the nodes of the file.
  Result<std::uint32_t> push_inner(ModelNode node, ModelShape result, std::string stem) {
    model_.file.nodes.push_back(std::move(node));
    model_.stems.push_back(std::move(stem));
    const auto value = static_cast<std::uint32_t>(model_.file.values.size());
    WEFT_TRY_STATUS(add_value(fmt::format("{} of {}", model_.file.nodes.size(), node_->outputs[0]), result));
    WEFT_TRY_STATUS(formats::check_form(model_.file, model_.file.nodes.size() - 1));
    return value;
  }

  static ModelNode made(Operation operation, std::vector<std::uint32_t> operands) {
    ModelNode node;
    node.operation = operation;
    node.operands = std::move(operands);
    return node;
  }

  Status alias() {
    if (const Folded* value = known(0)) {
      folded_[node_->outputs[0]] = *value;
      return {};
    }
    WEFT_TRY(x, operand(0));
    if (!at_.emplace(node_->outputs[0], x).second) return user_error("the output is computed twice");
    return {};
  }

  Status function(std::string_view form, Operation nearest = Operation::relu) {
    WEFT_TRY(x, operand(0));
    if (nearest == Operation::relu && form != "relu({})") model_.functions[model_.file.nodes.size()] = form;
    const std::string stem(form.substr(0, form.find('(')));
    return push(made(nearest, {x}), ModelShape(shape(x)), stem.empty() ? "scaled" : stem);
  }
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
  Status add_leaky_relu() {
    const double slope = real("alpha", 0.01);
    if (!(slope >= 0 && slope <= 1))
      return user_error(fmt::format("alpha: expected 0 to 1, found {}", slope));
    return function(fmt::format("greatest({{}}, {{}} * {})", slope));
  }
  Status add_softplus() { return function("(relu({}) + log(1 + exp(-abs({}))))"); }
  Status add_hard_sigmoid() {
    return function(
        fmt::format("least(greatest({{}} * {} + {}, 0), 1)", real("alpha", 0.2), real("beta", 0.5)));
  }
  Status add_hard_swish() { return function("({} * least(greatest({} / 6 + 0.5, 0), 1))"); }
  Status add_clip() {
    std::string form = "{}";
    for (const std::size_t i : {1u, 2u}) {
      if (!given(i)) continue;
      const auto bound = number(i);
      if (!bound || !std::isfinite(*bound)) return user_error("expected bounds that are numbers");
      form = fmt::format("{}({}, {})", i == 1 ? "greatest" : "least", form, *bound);
    }
    return form == "{}" ? alias() : function(form);
  }
  Status bounded(std::string_view name) {
    const auto left = number(0), right = number(1);
    if (node_->inputs.size() != 2 || left.has_value() == right.has_value())
      return user_error("expected a tensor and a number");
    return with_number(fmt::format("{}({{}}, {})", name, left ? *left : *right));
  }
  Status add_max() { return bounded("greatest"); }
  Status add_min() { return bounded("least"); }
  Status add_neg() { return with_number("(-{})"); }
  Status add_gelu() {
    const auto way = node_->attributes.find("approximate");
    if (way != node_->attributes.end() && way->second.word == "tanh") return function("gelu_tanh({})");
    return function("gelu({})", Operation::gelu);
  }

  // By a number that is known: scaled, moved, raised.
  Status with_number(std::string form) {
    WEFT_TRY(x, operand(known(0) != nullptr && number(0) ? 1 : 0));
    model_.functions[model_.file.nodes.size()] = std::move(form);
    return push(made(Operation::relu, {x}), ModelShape(shape(x)), "scaled");
  }

  Status two(Operation operation, std::string_view infix, std::string_view stem) {
    const std::optional<double> left = number(0), right = number(1);
    for (const auto& value : {left, right})
      if (value && !std::isfinite(*value)) return user_error("expected a finite number");
    if (right)
      return with_number(fmt::format("({{}}{}{})", infix,
                                     *right < 0 ? fmt::format("({})", *right) : fmt::format("{}", *right)));
    if (left) return with_number(fmt::format("({}{}{{}})", *left, infix));
    WEFT_TRY(a, operand(0));
    WEFT_TRY(b, operand(1));
    const ModelShape &x = shape(a), &y = shape(b);
    ModelShape result(std::max(x.size(), y.size()));
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::int64_t p = i < x.size() ? x[x.size() - 1 - i] : 1,
                         q = i < y.size() ? y[y.size() - 1 - i] : 1;
      if (p != q && p != 1 && q != 1)
        return user_error(fmt::format("shapes do not go together: {} and {}", formats::print_shape(x),
                                      formats::print_shape(y)));
      result[result.size() - 1 - i] = std::max(p, q);
    }
    model_.infixes[model_.file.nodes.size()] = infix;
    return push(made(operation, {a, b}), std::move(result), std::string(stem));
  }
  Status add_add() { return two(Operation::add, " + ", "sum"); }
  Status add_sub() { return two(Operation::add, " - ", "difference"); }
  Status add_mul() { return two(Operation::mul, " * ", "product"); }
  Status add_div() { return two(Operation::mul, " / ", "quotient"); }
  Status add_pow() {
    const auto power = number(1);
    if (!power) return user_error("expected a power that is one number");
    return with_number(fmt::format("pow({{}}, {})", *power));
  }

  Result<std::uint32_t> turned_weight(std::uint32_t weight) {
    ModelNode node = made(Operation::transpose, {weight});
    node.order = {1, 0};
    const ModelShape& from = shape(weight);
    if (from.size() != 2)
      return user_error(fmt::format("expected a matrix, found {}", formats::print_shape(from)));
    return push_inner(std::move(node), {from[1], from[0]}, "turned");
  }

  Result<ModelShape> product_shape(std::uint32_t a, std::uint32_t b) const {
    const ModelShape &x = shape(a), &y = shape(b);
    bool fits = x.size() >= 2 && y.size() >= 2 && y.size() <= x.size() && x.back() == y[y.size() - 2];
    for (std::size_t i = 0; fits && i + 2 < y.size(); ++i) fits = y[i] == x[x.size() - y.size() + i];
    if (!fits)
      return user_error(fmt::format("expected matrices [.., m, k] and [.., k, n], found {} and {}",
                                    formats::print_shape(x), formats::print_shape(y)));
    ModelShape result = x;
    result.back() = y.back();
    return result;
  }

  Status add_matmul() {
    WEFT_TRY(a, operand(0));
    WEFT_TRY(b, operand(1));
    WEFT_TRY(result, product_shape(a, b));
    return push(made(Operation::matmul, {a, b}), std::move(result), "product");
  }

  Status add_gemm() {
    WEFT_TRY(a, operand(0));
    WEFT_TRY(b, operand(1));
    if (whole("transA", 0) != 0) {
      WEFT_TRY(turned, turned_weight(a));
      a = turned;
    }
    if (whole("transB", 0) != 0) {
      WEFT_TRY(turned, turned_weight(b));
      b = turned;
    }
    if (real("alpha", 1) != 1 || real("beta", 1) != 1) return user_error("expected alpha and beta of 1");
    WEFT_TRY(result, product_shape(a, b));
    if (!given(2)) return push(made(Operation::matmul, {a, b}), std::move(result), "linear");
    WEFT_TRY(c, operand(2));
    WEFT_TRY(product, push_inner(made(Operation::matmul, {a, b}), result, "linear"));
    model_.infixes[model_.file.nodes.size()] = " + ";
    return push(made(Operation::add, {product, c}), std::move(result), "linear");
  }

  // Kernel, stride and padding of a window; the result's height and width.
  Status window(ModelNode& node, std::vector<std::int64_t> kernel, const ModelShape& x, ModelShape& result) {
    auto strides = wholes("strides"), pads = wholes("pads"), dilations = wholes("dilations");
    if (x.size() != 4 || kernel.size() != 2)
      return user_error(fmt::format("expected an image of 4 dims, found {}", formats::print_shape(x)));
    if (strides.empty()) strides = {1, 1};
    if (pads.empty()) pads = {0, 0, 0, 0};
    const auto way = node_->attributes.find("auto_pad");
    if (way != node_->attributes.end() && way->second.word != "NOTSET" && way->second.word != "VALID")
      return user_error(
          fmt::format("auto_pad: expected NOTSET or VALID, found '{}'", formats::shown(way->second.word)));
    if (whole("ceil_mode", 0) != 0) return user_error("ceil_mode: expected 0");
    if (std::ranges::any_of(dilations, [](std::int64_t d) { return d != 1; }))
      return user_error("dilations: expected 1");
    if (strides.size() != 2 || strides[0] != strides[1] || strides[0] < 1)
      return user_error("strides: expected one number twice");
    if (pads.size() != 4 || pads[0] != pads[2] || pads[1] != pads[3] || pads[0] < 0 || pads[1] < 0)
      return user_error("pads: expected the same on either side");
    node.stride = strides[0];
    node.pad_high = pads[0];
    node.pad_wide = pads[1];
    node.window = kernel[0];
    for (const std::size_t d : {0u, 1u}) {
      const std::int64_t room = x[d + 2] + 2 * pads[d] - kernel[d];
      if (kernel[d] < 1 || kernel[d] > formats::kMostModelSize || pads[d] > formats::kMostModelSize ||
          room < 0)
        return user_error(
            fmt::format("a window of {} does not fit {} with pads of {}", kernel[d], x[d + 2], pads[d]));
      result[d + 2] = room / node.stride + 1;
    }
    return {};
  }

  Status add_conv() {
    WEFT_TRY(x, operand(0));
    WEFT_TRY(w, operand(1));
    const ModelShape &image = shape(x), &weight = shape(w);
    if (image.size() != 4 || weight.size() != 4)
      return user_error(fmt::format("expected an image and a weight of 4 dims, found {} and {}",
                                    formats::print_shape(image), formats::print_shape(weight)));
    ModelNode node = made(Operation::conv2d, {x, w});
    node.groups = whole("group", 1);
    if (node.groups < 1 || image[1] % node.groups != 0 || weight[0] % node.groups != 0 ||
        weight[1] != image[1] / node.groups)
      return user_error(fmt::format("expected {} channels in {} groups, found a weight {}", image[1],
                                    node.groups, formats::print_shape(weight)));
    ModelShape result = {image[0], weight[0], 1, 1};
    WEFT_TRY_STATUS(window(node, {weight[2], weight[3]}, image, result));
    if (given(2)) {
      WEFT_TRY(bias, operand(2));
      if (shape(bias) != ModelShape{weight[0]}) return user_error("expected a bias of one number a channel");
      model_.biases[model_.file.nodes.size()] = bias;
    }
    return push(std::move(node), std::move(result), "conv");
  }

  Status add_pool(Operation operation, std::string_view stem) {
    WEFT_TRY(x, operand(0));
    ModelNode node = made(operation, {x});
    ModelShape result = shape(x);
    WEFT_TRY_STATUS(window(node, wholes("kernel_shape"), shape(x), result));
    const auto kernel = wholes("kernel_shape");
    if (kernel[0] != kernel[1] || node.pad_high != node.pad_wide)
      return user_error("expected a square window");
    if (operation == Operation::pool_avg && node.pad_high > 0 && whole("count_include_pad", 0) == 0)
      return user_error("count_include_pad: expected 1 where there are pads");
    return push(std::move(node), std::move(result), std::string(stem));
  }
  Status add_max_pool() { return add_pool(Operation::pool_max, "pool"); }
  Status add_avg_pool() { return add_pool(Operation::pool_avg, "pool"); }

  Status add_global_pool() {
    WEFT_TRY(x, operand(0));
    const ModelShape& image = shape(x);
    if (image.size() != 4 || image[2] != image[3])
      return user_error(fmt::format("expected a square image, found {}", formats::print_shape(image)));
    ModelNode node = made(Operation::pool_avg, {x});
    node.window = node.stride = image[2];
    return push(std::move(node), {image[0], image[1], 1, 1}, "pool");
  }

  Status add_softmax() {
    WEFT_TRY(x, operand(0));
    ModelNode node = made(Operation::softmax, {x});
    WEFT_TRY(along, axis(whole("axis", -1), shape(x).size()));
    node.axis = along;
    return push(std::move(node), ModelShape(shape(x)), "probs");
  }

  Status add_layer_norm() {
    WEFT_TRY(x, operand(0));
    WEFT_TRY(along, axis(whole("axis", -1), shape(x).size()));
    if (along + 1 != shape(x).size()) return user_error("axis: expected the last dim");
    ModelNode node = made(Operation::layernorm, {x});
    for (const std::size_t i : {1u, 2u}) {
      if (!given(i)) continue;
      WEFT_TRY(weight, operand(i));
      node.operands.push_back(weight);
    }
    node.axis = along;
    node.number = real("epsilon", 1e-5);
    return push(std::move(node), ModelShape(shape(x)), "norm");
  }

  Status add_batch_norm() {
    WEFT_TRY(x, operand(0));
    if (whole("training_mode", 0) != 0) return user_error("training_mode: expected 0");
    ModelNode node = made(Operation::batchnorm, {x});
    for (const std::size_t i : {1u, 2u, 3u, 4u}) {
      WEFT_TRY(weight, operand(i));
      if (i > 2) {
        if (weight < model_.file.inputs || weight >= model_.file.inputs + model_.file.weights)
          return user_error("expected a mean and a variance that the file holds");
        model_.states.insert(weight);
      }
      node.operands.push_back(weight);
    }
    node.number = real("epsilon", 1e-5);
    return push(std::move(node), ModelShape(shape(x)), "norm");
  }

  Status reshape_to(ModelShape result) {
    WEFT_TRY(x, operand(0));
    return push(made(Operation::reshape, {x}), std::move(result), "shaped");
  }

  Status add_reshape() {
    WEFT_TRY(x, operand(0));
    const Folded* sizes = known(1);
    if (sizes == nullptr) return user_error("expected a shape that is known, found one that is computed");
    std::int64_t elements = 1, rest = 1;
    for (const std::int64_t size : shape(x)) elements *= size;
    ModelShape result = sizes->wholes;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result[i] == 0 && i < shape(x).size() && whole("allowzero", 0) == 0) result[i] = shape(x)[i];
      if (result[i] == -1 && !open) {
        open = i;
        continue;
      }
      if (result[i] < 1 || __builtin_mul_overflow(rest, result[i], &rest))
        return user_error(fmt::format("expected sizes from 1 on, found {}", result[i]));
    }
    if (open) {
      if (elements % rest != 0)
        return user_error(fmt::format("{} elements are no multiple of {}", elements, rest));
      result[*open] = elements / rest;
    }
    return reshape_to(std::move(result));
  }

  Status add_flatten() {
    WEFT_TRY(x, operand(0));
    const std::int64_t at = whole("axis", 1);
    const auto rank = static_cast<std::int64_t>(shape(x).size());
    if (at < -rank || at > rank)
      return user_error(fmt::format("expected an axis of {} dims, found {}", rank, at));
    ModelShape result = {1, 1};
    for (std::int64_t i = 0; i < rank; ++i)
      result[i < (at < 0 ? at + rank : at) ? 0 : 1] *= shape(x)[static_cast<std::size_t>(i)];
    return reshape_to(std::move(result));
  }

  Status add_unsqueeze() {
    WEFT_TRY(x, operand(0));
    const Folded* axes = known(1);
    if (axes == nullptr) return user_error("expected axes that are known");
    ModelShape result = shape(x);
    std::vector<std::int64_t> places = axes->wholes;
    const auto rank = static_cast<std::int64_t>(result.size() + places.size());
    for (std::int64_t& place : places) {
      if (place < -rank || place >= rank)
        return user_error(fmt::format("expected an axis of {} dims, found {}", rank, place));
      if (place < 0) place += rank;
    }
    std::ranges::sort(places);
    for (const std::int64_t place : places) {
      if (place > static_cast<std::int64_t>(result.size())) return user_error("expected every axis once");
      result.insert(result.begin() + place, 1);
    }
    return reshape_to(std::move(result));
  }

  Status add_squeeze() {
    WEFT_TRY(x, operand(0));
    const Folded* axes = known(1);
    ModelShape result;
    std::set<std::size_t> gone;
    if (axes != nullptr)
      for (const std::int64_t place : axes->wholes) {
        WEFT_TRY(at, axis(place, shape(x).size()));
        if (shape(x)[at] != 1) return user_error(fmt::format("expected a dim of 1, found {}", shape(x)[at]));
        gone.insert(at);
      }
    for (std::size_t i = 0; i < shape(x).size(); ++i)
      if (axes == nullptr ? shape(x)[i] != 1 : !gone.contains(i)) result.push_back(shape(x)[i]);
    return reshape_to(std::move(result));
  }

  Status add_transpose() {
    WEFT_TRY(x, operand(0));
    ModelNode node = made(Operation::transpose, {x});
    const std::size_t rank = shape(x).size();
    std::vector<std::int64_t> order = wholes("perm");
    if (order.empty())
      for (std::size_t i = rank; i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
    ModelShape result;
    std::set<std::size_t> seen;
    for (const std::int64_t place : order) {
      WEFT_TRY(at, axis(place, rank));
      if (!seen.insert(at).second) return user_error("perm: expected every dim once");
      node.order.push_back(at);
      result.push_back(shape(x)[at]);
    }
    if (result.size() != rank) return user_error("perm: expected every dim once");
    return push(std::move(node), std::move(result), "turned");
  }

  Status add_concat() {
    std::vector<std::uint32_t> operands;
    for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
      WEFT_TRY(x, operand(i));
      operands.push_back(x);
    }
    if (operands.size() < 2 || operands.size() > 64)
      return user_error(fmt::format("expected 2 to 64 operands, found {}", operands.size()));
    ModelShape result = shape(operands[0]);
    WEFT_TRY(along, axis(whole("axis", 0), result.size()));
    for (std::size_t i = 1; i < operands.size(); ++i) {
      const ModelShape& other = shape(operands[i]);
      for (std::size_t d = 0; d < result.size(); ++d)
        if (other.size() != result.size() || (d != along && other[d] != result[d]))
          return user_error(fmt::format("shapes do not go together: {} and {}", formats::print_shape(result),
                                        formats::print_shape(other)));
      result[along] += other[along];
    }
    ModelNode node = made(Operation::concat, std::move(operands));
    node.axis = along;
    return push(std::move(node), std::move(result), "joined");
  }

  Status add_gather() {
    WEFT_TRY(table, operand(0));
    WEFT_TRY(positions, operand(1));
    if (whole("axis", 0) != 0 || shape(table).size() != 2 || !model_.positions.contains(positions))
      return user_error("expected a table [rows, d] and an input of positions, along axis 0");
    ModelShape result = shape(positions);
    result.back() = shape(table)[1];
    return push(made(Operation::embedding_sum, {positions, table}), std::move(result), "embedded");
  }

  const OnnxGraph& graph_;
  const OnnxNode* node_ = nullptr;
  OnnxModel model_;
  std::map<std::string, std::uint32_t, std::less<>> at_;
  std::map<std::string, Folded, std::less<>> folded_;
};

const std::vector<OnnxResolver::Operator>& OnnxResolver::operators() {
  static const std::vector<Operator> kOperators = {{"Abs", &OnnxResolver::add_abs},
                                                   {"Add", &OnnxResolver::add_add},
                                                   {"AveragePool", &OnnxResolver::add_avg_pool},
                                                   {"BatchNormalization", &OnnxResolver::add_batch_norm},
                                                   {"Clip", &OnnxResolver::add_clip},
                                                   {"Concat", &OnnxResolver::add_concat},
                                                   {"Conv", &OnnxResolver::add_conv},
                                                   {"Cos", &OnnxResolver::add_cos},
                                                   {"Div", &OnnxResolver::add_div},
                                                   {"Dropout", &OnnxResolver::alias},
                                                   {"Erf", &OnnxResolver::add_erf},
                                                   {"Exp", &OnnxResolver::add_exp},
                                                   {"Flatten", &OnnxResolver::add_flatten},
                                                   {"Gather", &OnnxResolver::add_gather},
                                                   {"Gelu", &OnnxResolver::add_gelu},
                                                   {"Gemm", &OnnxResolver::add_gemm},
                                                   {"GlobalAveragePool", &OnnxResolver::add_global_pool},
                                                   {"HardSigmoid", &OnnxResolver::add_hard_sigmoid},
                                                   {"HardSwish", &OnnxResolver::add_hard_swish},
                                                   {"Identity", &OnnxResolver::alias},
                                                   {"LayerNormalization", &OnnxResolver::add_layer_norm},
                                                   {"LeakyRelu", &OnnxResolver::add_leaky_relu},
                                                   {"Log", &OnnxResolver::add_log},
                                                   {"MatMul", &OnnxResolver::add_matmul},
                                                   {"Max", &OnnxResolver::add_max},
                                                   {"MaxPool", &OnnxResolver::add_max_pool},
                                                   {"Min", &OnnxResolver::add_min},
                                                   {"Mul", &OnnxResolver::add_mul},
                                                   {"Neg", &OnnxResolver::add_neg},
                                                   {"Pow", &OnnxResolver::add_pow},
                                                   {"Reciprocal", &OnnxResolver::add_reciprocal},
                                                   {"Relu", &OnnxResolver::add_relu},
                                                   {"Reshape", &OnnxResolver::add_reshape},
                                                   {"Sigmoid", &OnnxResolver::add_sigmoid},
                                                   {"Sin", &OnnxResolver::add_sin},
                                                   {"Softmax", &OnnxResolver::add_softmax},
                                                   {"Softplus", &OnnxResolver::add_softplus},
                                                   {"Sqrt", &OnnxResolver::add_sqrt},
                                                   {"Squeeze", &OnnxResolver::add_squeeze},
                                                   {"Sub", &OnnxResolver::add_sub},
                                                   {"Tanh", &OnnxResolver::add_tanh},
                                                   {"Transpose", &OnnxResolver::add_transpose},
                                                   {"Unsqueeze", &OnnxResolver::add_unsqueeze}};
  return kOperators;
}

}  // namespace

std::vector<std::string_view> onnx_operators() {
  std::vector<std::string_view> names;
  for (const auto& known : OnnxResolver::operators()) names.push_back(known.name);
  return names;
}

Result<OnnxModel> resolve_onnx(const OnnxGraph& graph) { return OnnxResolver(graph).resolve(); }

}  // namespace weft::imports
