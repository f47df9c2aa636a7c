#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/convolution.h"
#include "weft/device/cuda/expression.h"
#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/images.h"

namespace weft::device::cuda {
namespace {

// The sizes of a convolution as constants in the source.
std::string sizes(const ops::Convolution& conv) {
  return fmt::format(
      "    const int C = {}, O = {}, H = {}, W = {}, P = {}, Q = {}, R = {}, S = {}, top = {}, left = {}, T "
      "= {}, G = {};\n"
      "    const int CG = C / G, OG = O / G;\n",
      conv.channels, conv.outputs, conv.height, conv.width, conv.high, conv.wide, conv.rows, conv.columns,
      conv.padding, conv.padding_w, conv.stride, conv.groups);
}

// The definition, one thread per result: works for every shape.
Made make_convolution(const Call& call) {
  const plan::NodeView& node = call.node;
  const plan::Operator* const op = &node.op();
  if (op == &ops::conv2d()) {
    WEFT_TRY(conv, ops::convolution(node, node.input_type(0), node.input_type(1)));
    const std::string body = sizes(conv) +
                             "    const int q = int(i % Q), p = int(i / Q % P), o = int(i / Q / P % O);\n"
                             "    const long long n = i / Q / P / O;\n"
                             "    const int g = o / OG;\n"
                             "    float total = 0.0f;\n"
                             "    for (int c = 0; c < CG; ++c)\n"
                             "      for (int r = 0; r < R; ++r) {\n"
                             "        const int h = p * T + r - top;\n"
                             "        if (h < 0 || h >= H) continue;\n"
                             "        for (int s = 0; s < S; ++s) {\n"
                             "          const int w = q * T + s - left;\n"
                             "          if (w >= 0 && w < W)\n"
                             "            total += a[((n * C + g * CG + c) * H + h) * W + w] * b[((long "
                             "long)(o * CG + c) * R + r) * S + s];\n"
                             "        }\n      }\n"
                             "    r0[i] = total;\n";
    return elements_kernel(call, over_elements(call, body), node.result_type(0).elements());
  }
  if (op == &ops::conv2d_input_gradient()) {
    WEFT_TRY(conv, ops::convolution(node, node.result_type(0), node.input_type(1)));
    const std::string body =
        sizes(conv) +
        "    const int w = int(i % W), h = int(i / W % H), channel = int(i / W / H % C);\n"
        "    const long long n = i / W / H / C;\n"
        "    const int g = channel / CG, c = channel % CG;\n"
        "    float total = 0.0f;\n"
        "    for (int o = g * OG; o < (g + 1) * OG; ++o)\n"
        "      for (int r = 0; r < R; ++r) {\n"
        "        const int y = h + top - r;\n"
        "        if (y < 0 || y % T != 0 || y / T >= P) continue;\n"
        "        for (int s = 0; s < S; ++s) {\n"
        "          const int x = w + left - s;\n"
        "          if (x >= 0 && x % T == 0 && x / T < Q)\n"
        "            total += a[((n * O + o) * P + y / T) * Q + x / T] * b[((long long)(o * CG + c) * R + r) "
        "* S + s];\n"
        "        }\n      }\n"
        "    r0[i] = total;\n";
    return elements_kernel(call, over_elements(call, body), node.result_type(0).elements());
  }
  WEFT_TRY(conv, ops::convolution(node, node.input_type(1), node.result_type(0)));
  // One block per weight: addends of all images are summed in one order.
  const std::string body =
      sizes(conv) + fmt::format("    const long long points = {}ll * P * Q;\n", conv.batch) +
      "    const int s = int(i % S), r = int(i / S % R), c = int(i / S / R % CG), o = int(i / S / R / CG);\n"
      "    const int g = o / OG;\n"
      "    float total = 0.0f;\n"
      "    for (long long k = threadIdx.x; k < points; k += 256) {\n"
      "      const int q = int(k % Q), p = int(k / Q % P);\n"
      "      const long long n = k / Q / P;\n"
      "      const int h = p * T + r - top, w = q * T + s - left;\n"
      "      if (h >= 0 && h < H && w >= 0 && w < W)\n"
      "        total += a[((n * O + o) * P + p) * Q + q] * b[((n * C + g * CG + c) * H + h) * W + w];\n"
      "    }\n"
      "    total = weft_over_row<256>(total, 0.0f, weft_join_sum());\n"
      "    if (threadIdx.x == 0) r0[i] = total;\n";
  return blocks_kernel(call, over_blocks(call, body), node.result_type(0).elements());
}

}  // namespace

Made make_image(const Call& call) {
  const plan::Operator* const op = &call.node.op();
  const auto is_any = [&](auto... accessors) { return ((op == &accessors()) || ...); };
  if (is_any(ops::conv2d, ops::conv2d_input_gradient, ops::conv2d_weight_gradient)) {
    WEFT_TRY(by_library, make_library_convolution(call));
    if (by_library != nullptr) return std::unique_ptr<Kernel>(std::move(by_library));
    return make_convolution(call);
  }
  return {nullptr};
}

}  // namespace weft::device::cuda
