#include <algorithm>

#include <fmt/format.h>

#include "weft/device/cuda/call.h"
#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/kernel_source.h"
#include "weft/plan/ops/images.h"
#include "weft/plan/ops/pooling.h"

namespace weft::device::cuda {
namespace {

// Rows per band, so that each thread of a block has several iterations.
std::int64_t band_rows(std::int64_t rows, std::int64_t a_row) {
  constexpr std::int64_t kItems = 1024;
  const std::int64_t most = std::clamp(kItems / std::max<std::int64_t>(a_row, 1), std::int64_t{1}, rows);
  const std::int64_t bands = (rows + most - 1) / most;
  return (rows + bands - 1) / bands;
}

std::string window_constants(const Call& call, const ops::Pooling& pool, std::int64_t bands,
                             std::int64_t band) {
  constexpr std::int64_t kUnrolled = 4;
  return fmt::format(
      "typedef {} T;\n"
      "constexpr unsigned kHeight = {}, kWidth = {};\n"
      "constexpr int kHigh = {}, kWide = {}, kSize = {}, kStride = {}, kTop = {}, kLeft = {}, kBands = {}, "
      "kBand = {}, kUnrolled = {};\n",
      type_name(call.what.operands[0].dtype), pool.height, pool.width, pool.high, pool.wide, pool.size,
      pool.stride, pool.padding, pool.padding_w, bands, band, pool.size <= kUnrolled ? pool.size : 1);
}

Made make_max_pool(const Call& call, const ops::Pooling& pool) {
  const std::int64_t band = band_rows(pool.high, pool.wide), bands = (pool.high + band - 1) / band;
  const std::string helpers = kernel_source("max_pool", window_constants(call, pool, bands, band));
  return blocks_kernel(call, over_blocks(call, "    weft_max_pool(a, r0, i);\n", helpers),
                       pool.planes * bands);
}

// Null if the window or stride is too large for this to pay.
Made make_max_pool_gradient(const Call& call, const ops::Pooling& pool) {
  constexpr std::int64_t kMost = 8, kMostShared = 20'000;
  if (pool.size > kMost || pool.stride > kMost || pool.height * pool.width == 0) return {nullptr};
  const std::int64_t run = kMost % pool.stride == 0 ? kMost : pool.stride;
  const std::int64_t runs = (pool.width + run - 1) / run;
  const auto windows = [&](std::int64_t rows) {
    return ((rows + pool.size - 2) / pool.stride + 2) * pool.wide;
  };
  std::int64_t band = band_rows(pool.height, runs);
  while (band > 1 && windows(band) > kMostShared) band = (band + 1) / 2;
  if (windows(band) > kMostShared) return {nullptr};
  const plan::DType dtype = call.what.results[0].dtype;
  std::int64_t pack = 16 / plan::size_in_bytes(dtype);
  if (call.out[0] % 16 != 0 || run % pack != 0 || pool.width % pack != 0) pack = 1;
  const std::int64_t bands = (pool.height + band - 1) / band;
  const auto above = [](std::int64_t a, std::int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); };
  const std::string definitions =
      window_constants(call, pool, bands, band) + fmt::format(
                                                      "typedef {} D;\nconstexpr int kRun = {}, kRuns = {}, "
                                                      "kPack = {}, kShared = {}, kFirst = {}, kLast = {};\n",
                                                      type_name(dtype), run, runs, pack, windows(band),
                                                      above(pool.padding_w - pool.size + 1, pool.stride),
                                                      (run - 1 + pool.padding_w) / pool.stride);
  return blocks_kernel(call,
                       over_blocks(call, "    weft_max_pool_gradient(a, b, r0, i);\n",
                                   kernel_source("max_pool_gradient", definitions)),
                       pool.planes * bands);
}

}  // namespace

Made make_pool(const Call& call) {
  const plan::NodeView& node = call.node;
  const plan::Operator* const op = &node.op();
  const bool gradient = op == &ops::max_pool_gradient() || op == &ops::avg_pool_gradient();
  const bool largest = op == &ops::max_pool() || op == &ops::max_pool_gradient();
  if (!gradient && !largest && op != &ops::avg_pool()) return {nullptr};
  WEFT_TRY(pool, ops::pooling(node, gradient ? node.result_type(0) : node.input_type(0)));
  if (largest && !gradient) return make_max_pool(call, pool);
  if (largest) {
    WEFT_TRY(in_bands, make_max_pool_gradient(call, pool));
    if (in_bands != nullptr) return std::unique_ptr<Kernel>(std::move(in_bands));
  }
  std::string body = fmt::format(
      "    const int H = {}, W = {}, P = {}, Q = {}, K = {}, apart = {}, top = {}, left = {};\n", pool.height,
      pool.width, pool.high, pool.wide, pool.size, pool.stride, pool.padding, pool.padding_w);
  const std::string mean = number(1 / pool.window_points());
  const std::string_view type = type_name(node.input_type(0).dtype);
  if (!gradient) {
    body += fmt::format(
        "    const int q = int(i % Q), p = int(i / Q % P);\n    const {}* const x = a + i / Q / P * H * W;\n"
        "    float total = 0.0f;\n"
        "    for (int h = max(p * apart - top, 0); h < min(p * apart - top + K, H); ++h)\n"
        "      for (int w = max(q * apart - left, 0); w < min(q * apart - left + K, W); ++w) total += x[h * "
        "W + w];\n"
        "    r0[i] = total * {};\n",
        type, mean);
    return elements_kernel(call, over_elements(call, body), node.result_type(0).elements());
  }
  // One thread per element of x, which reads the windows that contain it, in order.
  body += fmt::format(
      "    const int w0 = int(i % W), h0 = int(i / W % H);\n    const long long plane = i / W / H;\n"
      "    const {}* const dy = a + plane * P * Q;\n",
      type);
  if (largest) body += "    const T* const x = b + plane * H * W;\n    float most;\n";
  body +=
      "    float total = 0.0f;\n"
      "    for (int p = max((h0 + top - K + apart) / apart, 0); p < P && p * apart - top <= h0; ++p)\n"
      "      for (int q = max((w0 + left - K + apart) / apart, 0); q < Q && q * apart - left <= w0; ++q) {\n"
      "      if (h0 >= p * apart - top + K || w0 >= q * apart - left + K) continue;\n";
  body +=
      largest
          ? "      if (weft_largest(x, p, q, most) == (h0 + top - p * apart) * K + w0 + left - q * apart)\n"
            "        total += dy[p * Q + q];\n"
          : fmt::format("      total += dy[p * Q + q] * {};\n", mean);
  body += "      }\n    r0[i] = total;\n";
  const std::string helpers =
      largest ? kernel_source("max_pool_window", window_constants(call, pool, 1, 1)) : std::string();
  return elements_kernel(call, over_elements(call, body, {}, helpers), node.result_type(0).elements());
}

}  // namespace weft::device::cuda
