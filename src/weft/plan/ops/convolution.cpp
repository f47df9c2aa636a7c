#include "weft/plan/ops/convolution.h"

#include <fmt/format.h>

#include "weft/plan/ops/images.h"
#include "weft/plan/ops/window.h"

namespace weft::ops {
namespace {

// w's indices differ from x's; only the channels may have the same name in both.
Status check_names(const plan::NodeView& node, const plan::Type& x, const plan::Type& w) {
  for (const std::size_t place : {0u, 1u, 2u, 3u}) {
    const Symbol index = w.dims[place].index;
    if (!x.has(index) || (place == 1 && x.position(index) == 1)) continue;
    return user_error(fmt::format("index {} of the weight is also an index of the image", node.text(index)),
                      "rename one of the two");
  }
  return {};
}

}  // namespace

double Convolution::multiply_adds() const {
  double points = 1;
  for (const std::int64_t size : {batch, outputs, high, wide, inputs, rows, columns})
    points *= static_cast<double>(size);
  return points;
}

StatedWindow window_of(const plan::NodeView& node) {
  const std::size_t attributes = node.op().attributes().size();
  return {.stride = node.integer(0),
          .padding = node.integer(1),
          .groups = node.integer(2),
          .padding_w = node.integer(3),
          .high = node.integer(attributes - 2),
          .wide = node.integer(attributes - 1)};
}

std::vector<plan::AttributeValue> attributes_like(const plan::NodeView& node, plan::TypeId type) {
  const StatedWindow window = window_of(node);
  std::vector<plan::AttributeValue> attributes = {window.stride, window.padding, window.groups,
                                                  window.padding_w};
  if (type.valid()) attributes.emplace_back(type);
  attributes.emplace_back(window.high);
  attributes.emplace_back(window.wide);
  return attributes;
}

Result<Convolution> convolution(const plan::NodeView& node, const plan::Type& x, const plan::Type& w) {
  const Symbols& symbols = node.graph().symbols();
  if (x.rank() != 4 || w.rank() != 4)
    return user_error(
        fmt::format("a convolution needs an image [b, c, h, w] and a weight [o, i, r, q], found {} and {}",
                    print_indices(x.dims, symbols), print_indices(w.dims, symbols)));
  WEFT_TRY_STATUS(check_names(node, x, w));

  Convolution conv;
  const StatedWindow window = window_of(node);
  WEFT_TRY_STATUS(expect_between("padding_w", window.padding_w, -1, kLargestStep));
  conv.stride = window.stride;
  conv.groups = window.groups;
  conv.padding = window.padding;
  conv.padding_w = window.padding_w < 0 ? window.padding : window.padding_w;
  conv.batch = x.dims[0].size;
  conv.channels = x.dims[1].size;
  conv.height = x.dims[2].size;
  conv.width = x.dims[3].size;
  conv.outputs = w.dims[0].size;
  conv.inputs = w.dims[1].size;
  conv.rows = w.dims[2].size;
  conv.columns = w.dims[3].size;

  WEFT_TRY_STATUS(expect_between("groups", conv.groups, 1, conv.channels));
  if (conv.channels % conv.groups != 0 || conv.channels / conv.groups != conv.inputs)
    return user_error(
        fmt::format("channels must be groups times the weight's: {} channels, {} groups, {} in the weight",
                    conv.channels, conv.groups, conv.inputs));
  if (conv.outputs % conv.groups != 0)
    return user_error(
        fmt::format("groups do not divide the outputs: {} groups, {} outputs", conv.groups, conv.outputs));
  WEFT_TRY(high, windows_along(node, x.dims[2], conv.rows, conv.stride, conv.padding, window.high));
  WEFT_TRY(wide, windows_along(node, x.dims[3], conv.columns, conv.stride, conv.padding_w, window.wide));
  conv.high = high;
  conv.wide = wide;
  conv.result = {x.dims[0], w.dims[0], {x.dims[2].index, high}, {x.dims[3].index, wide}};
  return conv;
}

bool is_convolution(const plan::Operator& op) {
  return &op == &conv2d() || &op == &conv2d_input_gradient() || &op == &conv2d_weight_gradient();
}

Convolution convolution_of(const plan::NodeView& node) {
  const bool of_input = &node.op() == &conv2d_input_gradient(),
             of_weight = &node.op() == &conv2d_weight_gradient();
  const plan::Type x = of_input ? node.result_type(0) : node.input_type(of_weight ? 1 : 0);
  return *convolution(node, x, of_weight ? node.result_type(0) : node.input_type(1));
}

plan::Work work_of(const plan::NodeView& node, const Convolution& conv) {
  plan::Work work = bytes_of(node);
  work.multiply_adds = conv.multiply_adds();
  work.flops = 2 * work.multiply_adds;
  return work;
}

}  // namespace weft::ops
