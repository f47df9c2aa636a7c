// Single CPU kernels on one thread, compared with the limits of the machine.
//
//   build/release/bench_kernels [WORD]        only kernels whose names contain WORD
//
// "limit" is the longer of two times measured in the same turn: for the same number of
// multiply-adds in a large matrix product, and for copying as many bytes as the kernel must read
// and write once, between arrays of the same size. "share" is limit / time; 1.00 is as fast as the
// machine allows. All times are processor times, which other load affects least.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "weft/device/cpu/attention.h"
#include "weft/device/cpu/batch_norm.h"
#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/convolution.h"
#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/pooling.h"
#include "weft/plan/ops/arithmetic.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/program/tasks/items.h"

namespace {

using namespace weft;
using namespace weft::device::cpu;

std::vector<float> numbers(std::int64_t count) {
  std::vector<float> all(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (float& one : all) {
    state = state * 1664525u + 1013904223u;
    one = static_cast<float>(state >> 8) / static_cast<float>(1 << 24) + 0.01f;
  }
  return all;
}

// The shortest of several turns of about 20 ms.
double seconds_of(const std::function<void()>& work) {
  work();
  double best = 1e9;
  for (int turn = 0; turn < 7; ++turn) {
    int times = 0;
    const double begin = bench::processor_seconds();
    double end = begin;
    while (end - begin < 0.02) {
      work();
      ++times;
      end = bench::processor_seconds();
    }
    best = std::min(best, (end - begin) / times);
  }
  return best;
}

class Limits {
 public:
  Limits() : a_(numbers(512 * 512)), b_(a_), c_(a_) {}

  double of_flops(double flops) {
    if (rate_ == 0)
      rate_ = 2.0 * 512 * 512 * 512 / seconds_of([&] {
                portable_gemm(Transpose::no, Transpose::no, 512, 512, 512, 1.0f, a_.data(), 512, b_.data(),
                              512, 0.0f, c_.data(), 512);
              });
    return flops / rate_;
  }

  static double of_bytes(double bytes) {
    const std::vector<float> from = numbers(static_cast<std::int64_t>(bytes) / 8 + 1);
    std::vector<float> to = from;
    return seconds_of([&] { std::memcpy(to.data(), from.data(), to.size() * sizeof(float)); });
  }

 private:
  std::vector<float> a_, b_, c_;
  double rate_ = 0;
};

class Table {
 public:
  explicit Table(std::string_view only) : only_(only) {
    fmt::print("{:<44} {:>10} {:>10} {:>6}\n", "kernel", "time", "limit", "share");
  }

  void row(const std::string& name, double flops, double bytes, const std::function<void()>& work) {
    if (name.find(only_) == std::string::npos) return;
    const double limit = std::max(limits_.of_flops(flops), Limits::of_bytes(bytes)), time = seconds_of(work);
    fmt::print("{:<44} {:>7.1f} us {:>7.1f} us {:>6.2f}\n", name, 1e6 * time, 1e6 * limit, limit / time);
    std::fflush(stdout);
  }

 private:
  const std::string_view only_;
  Limits limits_;
};

void batch_norms(Table& table) {
  for (const auto& [batch, channels, inner] :
       {std::tuple{64, 64, 64}, {64, 128, 49}, {64, 256, 16}, {64, 512, 1}, {32, 64, 1024}}) {
    const BatchNorm norm{
        .batch = batch, .channels = channels, .inner = inner, .epsilon = 1e-5f, .momentum = 0.1f};
    const std::int64_t all = norm.batch * norm.channels * norm.inner;
    const auto x = numbers(all), mean = numbers(channels), variance = numbers(channels);
    auto y = x, next_mean = mean, next_variance = variance, rstd = mean;
    const std::string shape = fmt::format("[{}, {}, {}]", batch, channels, inner);
    table.row("batch norm train " + shape, 0, 8.0 * static_cast<double>(all), [&] {
      batch_norm_train(norm, 0, norm.channels, x.data(), mean.data(), variance.data(), y.data(),
                       next_mean.data(), next_variance.data(), rstd.data());
    });
  }
}

void powers(Table& table) {
  const std::int64_t n = 1024;
  const auto x = numbers(n), varying = numbers(n);
  auto y = x;
  for (const float exponent : {2.0f, 3.0f, 0.5f, -1.0f, -0.5f, 4.0f, 1.7f}) {
    const LaneOperand operands[] = {{x.data(), false}, {&exponent, true}};
    table.row(fmt::format("pow {} of 1024", exponent), 0, 8.0 * 1024,
              [&] { run_lane(Lane::pow, n, operands, y.data()); });
  }
  const LaneOperand operands[] = {{x.data(), false}, {varying.data(), false}};
  table.row("pow varying of 1024", 0, 12.0 * 1024, [&] { run_lane(Lane::pow, n, operands, y.data()); });
  const LaneOperand one[] = {{x.data(), false}};
  const auto exp = static_cast<Lane>(ops::pointwise_place(ops::exp()));
  table.row("exp of 1024", 0, 8.0 * 1024, [&] { run_lane(exp, n, one, y.data()); });
}

void convolutions(Table& table) {
  struct Shape {
    std::int64_t batch, in, out, size, kernel, stride, groups;
  };
  for (const Shape& s :
       {Shape{8, 64, 64, 28, 3, 1, 1}, Shape{8, 256, 256, 7, 3, 1, 1}, Shape{8, 32, 64, 14, 5, 1, 1},
        Shape{16, 16, 32, 12, 5, 1, 1}, Shape{8, 3, 64, 64, 7, 2, 1}, Shape{8, 128, 128, 28, 3, 1, 128},
        Shape{8, 128, 128, 28, 3, 2, 128}, Shape{8, 256, 256, 14, 3, 1, 256}, Shape{8, 96, 96, 14, 5, 1, 96},
        Shape{8, 512, 512, 7, 3, 1, 512}, Shape{8, 128, 128, 28, 3, 1, 32},
        Shape{8, 128, 128, 14, 3, 1, 4}}) {
    Convolution conv{.batch = s.batch,
                     .in = s.in,
                     .out = s.out,
                     .height = s.size,
                     .width = s.size,
                     .kernel_height = s.kernel,
                     .kernel_width = s.kernel,
                     .padding_height = s.kernel / 2,
                     .padding_width = s.kernel / 2,
                     .stride = s.stride,
                     .groups = s.groups};
    conv.out_height = conv.out_width = (s.size + 2 * (s.kernel / 2) - s.kernel) / s.stride + 1;
    const std::int64_t places = conv.batch * conv.out_height * conv.out_width;
    const std::int64_t x_size = conv.batch * conv.in * s.size * s.size, y_size = places * conv.out;
    const std::int64_t w_size = conv.out * (conv.in / conv.groups) * s.kernel * s.kernel;
    const auto x = numbers(x_size), w = numbers(w_size), dy = numbers(y_size);
    auto y = dy, dx = x, dw = w;
    std::vector<std::byte> scratch(scratch_bytes(conv));
    const double flops = 2.0 * static_cast<double>(places) * static_cast<double>(w_size);
    const double bytes = 4.0 * static_cast<double>(x_size + y_size);
    const std::string shape = fmt::format("[{}, {}->{}, {}x{}] {}x{} /{} g{}", s.batch, s.in, s.out, s.size,
                                          s.size, s.kernel, s.kernel, s.stride, s.groups);
    table.row("conv " + shape, flops, bytes,
              [&] { convolve(conv, 0, conv.batch, x.data(), w.data(), y.data(), scratch.data()); });
    table.row("conv dx " + shape, flops, bytes, [&] {
      convolve_input_gradient(conv, 0, conv.batch, dy.data(), w.data(), dx.data(), scratch.data());
    });
    table.row("conv dw " + shape, flops, bytes, [&] {
      convolve_weight_gradient(conv, 0, conv.in, dy.data(), x.data(), dw.data(), scratch.data());
    });
  }
}

void products_of_one_row(Table& table) {
  for (const auto& [n, k] : {std::pair{1024, 1024}, {4096, 1024}, {256, 256}}) {
    const auto b = numbers(std::int64_t{n} * k), a = numbers(k);
    auto c = numbers(n);
    for (const Transpose t : {Transpose::no, Transpose::yes})
      table.row(fmt::format("product 1 x {} x {}{}", n, k, t == Transpose::yes ? " transposed" : ""),
                2.0 * n * k, 4.0 * n * k, [&, n = n, k = k] {
                  gemm(Transpose::no, t, 1, n, k, 1.0f, a.data(), k, b.data(), t == Transpose::yes ? k : n,
                       0.0f, c.data(), n);
                });
  }
}

void pools(Table& table) {
  struct Shape {
    std::int64_t planes, size, window, stride, padding;
  };
  for (const Shape& s : {Shape{512, 32, 2, 2, 0}, Shape{256, 56, 3, 2, 1}, Shape{512, 14, 3, 1, 1},
                         Shape{512, 8, 2, 2, 0}, Shape{512, 26, 3, 2, 0}}) {
    const std::int64_t out = (s.size + 2 * s.padding - s.window) / s.stride + 1;
    const Pooling pool{s.size, s.size, out, out, s.window, s.stride, s.padding, s.padding};
    const auto x = numbers(s.planes * s.size * s.size), dy = numbers(s.planes * out * out);
    auto y = dy, dx = x;
    std::vector<std::byte> scratch(scratch_bytes(pool));
    const std::string shape =
        fmt::format("{} x {}x{} by {} /{} +{}", s.planes, s.size, s.size, s.window, s.stride, s.padding);
    const double bytes = 4.0 * static_cast<double>(x.size() + y.size());
    table.row("max pool " + shape, 0, bytes,
              [&] { max_pool(pool, 0, s.planes, x.data(), y.data(), scratch.data()); });
    table.row("max pool dx " + shape, 0, 2 * bytes,
              [&] { max_pool_gradient(pool, 0, s.planes, dy.data(), x.data(), dx.data(), scratch.data()); });
    table.row("avg pool " + shape, 0, bytes,
              [&] { avg_pool(pool, 0, s.planes, x.data(), y.data(), scratch.data()); });
  }
}

void norms(Table& table) {
  for (const std::int64_t n : {16, 32, 64, 100, 128, 384}) {
    const std::int64_t rows = 65536 / n;
    const auto x = numbers(rows * n);
    auto y = x;
    table.row(fmt::format("layer norm {} rows of {}", rows, n), 0, 8.0 * static_cast<double>(rows * n), [&] {
      float rstd = 0;
      for (std::int64_t r = 0; r < rows; ++r)
        layer_norm_row(x.data() + r * n, y.data() + r * n, n, 1e-5f, rstd);
    });
    table.row(fmt::format("softmax {} rows of {}", rows, n), 0, 8.0 * static_cast<double>(rows * n), [&] {
      for (std::int64_t r = 0; r < rows; ++r) softmax_row(x.data() + r * n, y.data() + r * n, n);
    });
  }
}

// q, k and v have layout [s, h, e], as one large product writes them. "kept" is the unfused form:
// all scores, then their softmax, then the product with the values.
void attentions(Table& table) {
  constexpr std::int64_t kHeads = 6, kWidth = 64;
  for (const std::int64_t s : {512, 1024, 2048, 4096, 8192}) {
    Attention how;
    how.of.over = {Symbol(0), s};
    how.of.along = {Symbol(1), s};
    how.of.causal = true;
    how.of.window = std::numeric_limits<double>::infinity();
    how.of.divisor = 8;
    how.queries = how.keys = s;
    how.inner = how.values = kWidth;
    for (std::int64_t h = 0; h < kHeads; ++h) {
      how.q.heads.push_back(h * kWidth);
      how.log_sum.heads.push_back(h);
    }
    how.q.step = kHeads * kWidth;
    how.log_sum.step = kHeads;
    how.k = how.v = how.y = how.dy = how.dq = how.dk = how.dv = how.q;
    const auto q = numbers(s * kHeads * kWidth), k = q, v = q, dy = q;
    auto y = q, dq = q, dk = q, dv = q, log_sum = numbers(s * kHeads);
    std::vector<std::byte> scratch(attention_scratch_bytes(how));
    const std::int64_t tiles = (s + program::kQueryTile - 1) / program::kQueryTile;
    const auto pairs = static_cast<double>(kHeads * s * (s + 1)) / 2;
    const double bytes = 4.0 * static_cast<double>(4 * q.size());
    const std::string shape = fmt::format("{} heads of {}, {} long", kHeads, kWidth, s);
    table.row("attention " + shape, 4 * kWidth * pairs, bytes, [&] {
      attend(how, 0, kHeads * tiles, q.data(), k.data(), v.data(), nullptr, y.data(), log_sum.data(),
             scratch.data());
    });
    table.row("attention back " + shape, 10 * kWidth * pairs, 2 * bytes, [&] {
      attend_gradient(how, 0, kHeads, q.data(), k.data(), v.data(), y.data(), log_sum.data(), dy.data(),
                      nullptr, {dq.data(), dk.data(), dv.data()}, scratch.data());
    });
    if (s > 4096) continue;  // needs s * s elements for each of six heads
    std::vector<float> scores(static_cast<std::size_t>(kHeads * s * s));
    table.row("attention kept " + shape, 4 * kWidth * pairs, bytes, [&] {
      using program::Band, program::Side;
      const auto of_head = [&](std::int64_t h) { return scores.data() + h * s * s; };
      for (std::int64_t h = 0; h < kHeads; ++h)
        gemm(Transpose::no, Transpose::yes, s, s, kWidth, 0.125f, q.data() + h * kWidth, kHeads * kWidth,
             k.data() + h * kWidth, kHeads * kWidth, 0, of_head(h), s, Band{Side::n, Side::m, 0});
      for (std::int64_t h = 0; h < kHeads; ++h)
        for (std::int64_t row = 0; row < s; ++row) {
          float* const line = of_head(h) + row * s;
          softmax_row(line, line, row + 1);
          std::fill(line + row + 1, line + s, 0.0f);
        }
      for (std::int64_t h = 0; h < kHeads; ++h)
        gemm(Transpose::no, Transpose::no, s, kWidth, s, 1, of_head(h), s, v.data() + h * kWidth,
             kHeads * kWidth, 0, y.data() + h * kWidth, kHeads * kWidth, Band{Side::k, Side::m, 0});
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  use_one_blas_thread();
  Table table(argc > 1 ? argv[1] : "");
  batch_norms(table);
  powers(table);
  convolutions(table);
  products_of_one_row(table);
  pools(table);
  norms(table);
  attentions(table);
}
