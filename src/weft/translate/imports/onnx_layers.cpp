// Products, convolutions, pools, norms, softmax and lookups.
#include <algorithm>

#include <fmt/format.h>

#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {

Result<std::uint32_t> OnnxResolver::transposed_weight(std::uint32_t weight) {
  ModelNode node = made(Operation::transpose, {weight});
  node.order = {1, 0};
  const ModelShape& from = shape(weight);
  if (from.size() != 2)
    return user_error(fmt::format("expected a matrix, found {}", formats::print_shape(from)));
  return push_inner(std::move(node), {from[1], from[0]}, "turned");
}

Result<OnnxResolver::ModelShape> OnnxResolver::product_shape(std::uint32_t a, std::uint32_t b) const {
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

Status OnnxResolver::add_matmul() {
  WEFT_TRY(a, operand(0));
  WEFT_TRY(b, operand(1));
  WEFT_TRY(result, product_shape(a, b));
  return push(made(Operation::matmul, {a, b}), std::move(result), "product");
}

Status OnnxResolver::add_gemm() {
  WEFT_TRY(a, operand(0));
  WEFT_TRY(b, operand(1));
  if (whole("transA", 0) != 0) {
    WEFT_TRY(turned, transposed_weight(a));
    a = turned;
  }
  if (whole("transB", 0) != 0) {
    WEFT_TRY(turned, transposed_weight(b));
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

Status OnnxResolver::window(ModelNode& node, std::vector<std::int64_t> kernel, const ModelShape& x,
                            ModelShape& result) {
  auto strides = wholes("strides"), pads = wholes("pads"), dilations = wholes("dilations");
  if (x.size() != 4 || kernel.size() != 2)
    return user_error(fmt::format("expected an image of 4 dims, found {}", formats::print_shape(x)));
  if (strides.empty()) strides = {1, 1};
  if (pads.empty()) pads = {0, 0, 0, 0};
  const auto way = node_->attributes.find("auto_pad");
  if (way != node_->attributes.end() && way->second.word != "NOTSET" && way->second.word != "VALID")
    return user_error(
        fmt::format("auto_pad: expected NOTSET or VALID, found '{}'", formats::shown(way->second.word)));
  if (way != node_->attributes.end() && way->second.word == "VALID" &&
      std::ranges::any_of(pads, [](std::int64_t pad) { return pad != 0; }))
    return user_error("pads: expected none with auto_pad of VALID");
  const auto stated = wholes("kernel_shape");
  if (!stated.empty() && stated != kernel)
    return user_error(fmt::format("kernel_shape: expected {}, found {}", formats::print_shape(kernel),
                                  formats::print_shape(stated)));
  if (whole("ceil_mode", 0) != 0) return user_error("ceil_mode: expected 0");
  if (std::ranges::any_of(dilations, [](std::int64_t d) { return d != 1; }))
    return user_error("dilations: expected 1");
  if (strides.size() != 2 || strides[0] != strides[1] || strides[0] < 1)
    return user_error("strides: expected two equal numbers");
  if (pads.size() != 4 || pads[0] != pads[2] || pads[1] != pads[3] || pads[0] < 0 || pads[1] < 0)
    return user_error("pads: expected the same on either side");
  node.stride = strides[0];
  node.pad_high = pads[0];
  node.pad_wide = pads[1];
  node.window = kernel[0];
  for (const std::size_t d : {0u, 1u}) {
    const std::int64_t room = x[d + 2] + 2 * pads[d] - kernel[d];
    if (kernel[d] < 1 || kernel[d] > formats::kMostModelSize || pads[d] > formats::kMostModelSize || room < 0)
      return user_error(
          fmt::format("a window of {} does not fit {} with pads of {}", kernel[d], x[d + 2], pads[d]));
    result[d + 2] = room / node.stride + 1;
  }
  return {};
}

Status OnnxResolver::add_conv() {
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
    if (shape(bias) != ModelShape{weight[0]})
      return user_error("expected a bias with one number per channel");
    model_.biases[model_.file.nodes.size()] = bias;
  }
  return push(std::move(node), std::move(result), "conv");
}

Status OnnxResolver::add_conv_transpose() {
  WEFT_TRY(x, operand(0));
  WEFT_TRY(w, operand(1));
  const ModelShape image = shape(x), weight = shape(w);
  if (image.size() != 4 || weight.size() != 4 || weight[0] != image[1])
    return user_error(fmt::format("expected an image [b, i, h, w] and a weight [i, o, r, q], found {} and {}",
                                  formats::print_shape(image), formats::print_shape(weight)));
  if (whole("group", 1) != 1)
    return user_error(fmt::format("group: expected 1, found {}", whole("group", 1)));
  if (!wholes("output_shape").empty())
    return user_error("output_shape: expected none", "state pads and output_padding");
  const auto extra = wholes("output_padding");
  if (!extra.empty() && (extra.size() != 2 || extra[0] != extra[1] || extra[0] < 0))
    return user_error("output_padding: expected two equal numbers");
  ModelNode node = made(Operation::conv2d_transpose, {x, w});
  // The window rules are those of the convolution that this transposes; sizes grow instead of
  // shrinking.
  ModelShape result = {image[0], weight[1], 1, 1}, large = image;
  for (const std::size_t d : {2u, 3u}) large[d] = formats::kMostModelSize;
  WEFT_TRY_STATUS(window(node, {weight[2], weight[3]}, large, result));
  node.begin = extra.empty() ? 0 : extra[0];
  if (node.begin >= node.stride && node.begin > 0)
    return user_error(fmt::format("output_padding: expected less than the stride of {}, found {}",
                                  node.stride, node.begin));
  for (const std::size_t d : {2u, 3u}) {
    const std::int64_t pad = d == 2 ? node.pad_high : node.pad_wide;
    if (__builtin_mul_overflow(node.stride, image[d] - 1, &result[d]))
      return user_error("strides: too large");
    result[d] += node.begin + weight[d] - 2 * pad;
  }
  if (given(2)) {
    WEFT_TRY(bias, operand(2));
    if (shape(bias) != ModelShape{weight[1]}) return user_error("expected a bias of one number per channel");
    model_.biases[model_.file.nodes.size()] = bias;
  }
  return push(std::move(node), std::move(result), "conv");
}

Status OnnxResolver::add_pool(Operation operation, std::string_view stem) {
  WEFT_TRY(x, operand(0));
  ModelNode node = made(operation, {x});
  ModelShape result = shape(x);
  WEFT_TRY_STATUS(window(node, wholes("kernel_shape"), shape(x), result));
  const auto kernel = wholes("kernel_shape");
  if (kernel[0] != kernel[1] || node.pad_high != node.pad_wide) return user_error("expected a square window");
  if (operation == Operation::pool_avg && node.pad_high > 0 && whole("count_include_pad", 0) == 0)
    return user_error("count_include_pad: expected 1 where there are pads");
  return push(std::move(node), std::move(result), std::string(stem));
}

Status OnnxResolver::add_global_pool() {
  WEFT_TRY(x, operand(0));
  const ModelShape& image = shape(x);
  if (image.size() != 4 || image[2] != image[3])
    return user_error(fmt::format("expected a square image, found {}", formats::print_shape(image)));
  ModelNode node = made(Operation::pool_avg, {x});
  node.window = node.stride = image[2];
  return push(std::move(node), {image[0], image[1], 1, 1}, "pool");
}

Status OnnxResolver::add_softmax() {
  WEFT_TRY(x, operand(0));
  ModelNode node = made(Operation::softmax, {x});
  WEFT_TRY(along, axis(whole("axis", -1), shape(x).size()));
  node.axis = along;
  return push(std::move(node), ModelShape(shape(x)), "probs");
}

Result<double> OnnxResolver::epsilon_of() const {
  const double epsilon = real("epsilon", 1e-5);
  if (epsilon >= 0 && epsilon < 1) return epsilon;
  return user_error(fmt::format("epsilon: expected a number from 0 to below 1, found {}", epsilon));
}

Status OnnxResolver::add_layer_norm() {
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
  WEFT_TRY(epsilon, epsilon_of());
  node.number = epsilon;
  return push(std::move(node), ModelShape(shape(x)), "norm");
}

Status OnnxResolver::add_batch_norm() {
  WEFT_TRY(x, operand(0));
  if (whole("training_mode", 0) != 0) return user_error("training_mode: expected 0");
  ModelNode node = made(Operation::batchnorm, {x});
  for (const std::size_t i : {1u, 2u, 3u, 4u}) {
    WEFT_TRY(weight, operand(i));
    if (i > 2) {
      if (weight < model_.file.inputs || weight >= model_.file.inputs + model_.file.weights)
        return user_error("expected a mean and a variance stored in the file");
      model_.states.insert(weight);
    }
    node.operands.push_back(weight);
  }
  WEFT_TRY(epsilon, epsilon_of());
  node.number = epsilon;
  return push(std::move(node), ModelShape(shape(x)), "norm");
}

// x[.., position, ..]: selects one position and drops the dim.
Status OnnxResolver::add_one_position(std::uint32_t x, std::int64_t position) {
  WEFT_TRY(along, axis(whole("axis", 0), shape(x).size()));
  if (position < 0) position += shape(x)[along];
  WEFT_TRY(part, cut(x, along, position, position + 1, std::nullopt));
  ModelShape result = shape(part);
  result.erase(result.begin() + static_cast<std::ptrdiff_t>(along));
  return push(made(Operation::reshape, {part}), std::move(result), "shaped");
}

Status OnnxResolver::add_gather() {
  WEFT_TRY(table, operand(0));
  if (known(1) != nullptr && known(1)->rank == 0 && known(1)->wholes.size() == 1)
    return add_one_position(table, known(1)->wholes.front());
  WEFT_TRY(positions, operand(1));
  if (whole("axis", 0) != 0 || shape(table).size() != 2 || !model_.positions.contains(positions))
    return user_error("expected a table [rows, d] and an input of positions, along axis 0");
  ModelShape result = shape(positions);
  result.back() = shape(table)[1];
  return push(made(Operation::embedding_sum, {positions, table}), std::move(result), "embedded");
}

}  // namespace weft::imports
