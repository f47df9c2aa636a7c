#include "weft/formats/model_attributes.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/formats/value.h"

namespace weft::formats {
namespace {

using Operation = ModelOperation;
using Pair = std::array<std::int64_t, 2>;

Status read_act(const JsonNode& from, ModelNode& node) {
  if (!from.has("act")) return {};
  WEFT_TRY(word, from.text("act"));
  if (word == "none") return {};
  for (const Operation act : {Operation::relu, Operation::sigmoid, Operation::tanh, Operation::gelu})
    if (word == name(act)) {
      node.act = act;
      return {};
    }
  return from.error(fmt::format("expected act none, relu, sigmoid, tanh or gelu, found '{}'", shown(word)));
}

Status read_scalar(const JsonNode& from, const char* key, double otherwise, ModelNode& node) {
  WEFT_TRY(number, from.number(key, otherwise));
  node.number = number;
  return {};
}

Status read_epsilon(const JsonNode& from, ModelNode& node) {
  WEFT_TRY_STATUS(read_scalar(from, "eps", 1e-5, node));
  if (node.number >= 0) return {};
  return from.error(fmt::format("expected an eps of 0 or more, found {}", node.number));
}

// Negative axes count from the end: -1 is the last.
Status read_axis(const JsonNode& from, const ModelShape& x, std::int32_t otherwise, ModelNode& node) {
  const auto rank = static_cast<std::int32_t>(x.size());
  std::int32_t axis = otherwise;
  if (from.has("axis")) {
    WEFT_TRY(found, from.whole("axis", -rank, rank - 1));
    axis = found;
  }
  node.axis = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  return {};
}

Status read_order(const JsonNode& from, const ModelShape& x, ModelNode& node) {
  WEFT_TRY(order, from.wholes("perm", 0, static_cast<std::int32_t>(x.size()) - 1));
  std::vector<bool> seen(x.size(), false);
  for (const std::int32_t place : order) {
    node.order.push_back(static_cast<std::size_t>(place));
    seen[node.order.back()] = true;
  }
  if (order.size() == x.size() && std::ranges::find(seen, false) == seen.end()) return {};
  return from.error(
      fmt::format("expected a perm of the {} dims, found [{}]", x.size(), fmt::join(order, ", ")));
}

Status check_shape(const JsonNode& from, const ModelShape& result) {
  if (!from.has("shape")) return {};
  WEFT_TRY(shape, from.wholes("shape", 1, kMostModelSize));
  if (std::ranges::equal(shape, result)) return {};
  return from.error(
      fmt::format("expected the node's shape {}, found [{}]", print_shape(result), fmt::join(shape, ", ")));
}

Result<Pair> read_pair(const JsonNode& from, const char* key, std::int32_t least) {
  WEFT_TRY(both, from.wholes(key, least, kMostModelSize));
  if (both.size() == 2) return Pair{both[0], both[1]};
  return from.error(fmt::format("expected two numbers in {}, found {}", key, both.size()));
}

// `same` pads so that there is one window per stride position. If the padding is odd, it is rounded
// up on both sides, as common kernels do.
Result<Pair> read_padding(const JsonNode& from, const ModelShape& x, const Pair& kernel,
                          std::int64_t stride) {
  if (from.has("pads")) {
    if (from.has("pad")) return from.error("expected pad or pads, found both");
    return read_pair(from, "pads", 0);
  }
  WEFT_TRY(word, from.text("pad"));
  Pair pads = {0, 0};
  if (word == "valid") return pads;
  if (word != "same") return from.error(fmt::format("expected pad same or valid, found '{}'", shown(word)));
  for (const std::size_t d : {0u, 1u}) {
    const std::int64_t windows = (x[d + 2] - 1) / stride + 1;
    const std::int64_t border = (windows - 1) * stride + kernel[d] - x[d + 2];
    pads[d] = (std::max<std::int64_t>(border, 0) + 1) / 2;
  }
  return pads;
}

Status read_window(const JsonNode& from, const ModelFile& file, ModelNode& node) {
  const ModelShape& x = file.shape(node.operands[0]);
  if (x.size() != 4) return from.error(fmt::format("expected an image of 4 dims, found {}", print_shape(x)));
  WEFT_TRY(kernel, read_pair(from, "kernel", 1));
  WEFT_TRY(stride, read_pair(from, "stride", 1));
  if (stride[0] != stride[1])
    return from.error(
        fmt::format("expected one stride for both dims, found {} and {}", stride[0], stride[1]));
  WEFT_TRY(pads, read_padding(from, x, kernel, stride[0]));
  node.stride = stride[0];
  node.pad_high = pads[0];
  node.pad_wide = pads[1];
  if (node.operation == Operation::conv2d) {
    WEFT_TRY(groups, from.has("groups") ? from.whole("groups", 1, kMostModelSize) : Result<std::int32_t>(1));
    node.groups = groups;
    const ModelShape& w = file.shape(node.operands[1]);
    if (w.size() == 4 && w[2] == kernel[0] && w[3] == kernel[1]) return {};
    return from.error(
        fmt::format("expected a weight [o, i, {}, {}], found {}", kernel[0], kernel[1], print_shape(w)));
  }
  node.window = kernel[0];
  if (kernel[0] == kernel[1] && pads[0] == pads[1]) return {};
  return from.error(fmt::format("expected a square window, found {} x {} with pads {} and {}", kernel[0],
                                kernel[1], pads[0], pads[1]));
}

}  // namespace

Status read_attributes(const JsonNode& from, const ModelFile& file, ModelNode& node) {
  const ModelShape& x = file.shape(node.operands[0]);
  switch (node.operation) {
    case Operation::conv2d: WEFT_TRY_STATUS(read_act(from, node)); return read_window(from, file, node);
    case Operation::pool_max:
    case Operation::pool_avg: return read_window(from, file, node);
    case Operation::matmul: return read_act(from, node);
    case Operation::softmax: return read_axis(from, x, -1, node);
    case Operation::layernorm: WEFT_TRY_STATUS(read_axis(from, x, -1, node)); return read_epsilon(from, node);
    case Operation::batchnorm: return read_epsilon(from, node);
    case Operation::concat: return read_axis(from, x, 0, node);
    case Operation::scale: return read_scalar(from, "factor", 1, node);
    case Operation::transpose: return read_order(from, x, node);
    case Operation::reshape: return check_shape(from, file.shape(file.result(file.nodes.size())));
    default: return {};
  }
}

}  // namespace weft::formats
