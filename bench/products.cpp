// Matrix products run through a plan, compared with direct calls of OpenBLAS.
//
//   build/release/bench_products [--quick]
//
// The plan is one contraction, compiled and run by a rank, so its time includes waking the workers
// and splitting the product into tasks. Both sides alternate in one run on the same operands, and
// their results are compared. Rates are from medians of wall time. On one thread, "ratio" uses
// processor time, which other load affects least.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "support/openblas.h"
#include "support/training_rank.h"
#include "weft/base/check.h"
#include "weft/base/machine.h"
#include "weft/base/random.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace {

using namespace weft;
using namespace weft::bench;

struct Product {
  std::int64_t m, n, k;
  bool a_transposed = false, b_transposed = false;  // stored k x m, n x k
  std::int64_t times = 1;                           // independent products

  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
           static_cast<double>(times);
  }
};

constexpr Product kProducts[] = {
    {2048, 2048, 2048}, {2048, 384, 384},        {2048, 1536, 384},
    {2048, 384, 1536},  {384, 1536, 2048, true}, {256, 256, 64, false, true, 48},
};

constexpr double kPause = 0.1;  // OpenBLAS's threads spin for about 60 ms after a product
constexpr double kTurn = 0.1;   // seconds per turn; short products are repeated
constexpr double kWanted = 0.95;
constexpr double kBusy = 0.3;  // processors used by others: a side on two threads then waits for one

std::string name_of(const Product& product) {
  std::string name = fmt::format("{}{} x {}{} x {}", product.m, product.a_transposed ? "'" : "", product.n,
                                 product.b_transposed ? "'" : "", product.k);
  return product.times == 1 ? name : name + fmt::format(", {} times", product.times);
}

std::string plan_text(const Product& product) {
  const std::string g = fmt::format("g={},", product.times), m = fmt::format("m={}", product.m),
                    n = fmt::format("n={}", product.n), k = fmt::format("k={}", product.k);
  return fmt::format(
      "plan product\n"
      "%0 = input {{name=a, type=f32[{0}{1},{2}]}}\n"
      "%1 = input {{name=b, type=f32[{0}{3},{4}]}}\n"
      "%2 = contract %0, %1 {{to=[g,m,n]}}\n"
      "return c=%2\n",
      g, product.a_transposed ? k : m, product.a_transposed ? m : k, product.b_transposed ? n : k,
      product.b_transposed ? k : n);
}

std::unique_ptr<exec::Rank> start(const Product& product, int workers) {
  const auto graph =
      std::make_shared<const plan::Graph>(or_throw(plan::read(plan_text(product), ops::all())));
  return or_throw(
      exec::Rank::start(or_throw(program::compile(graph, {.workers = workers})), {.workers = workers}));
}

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// The largest difference, relative to the size of a sum of k products of numbers in [-1, 1].
double difference(std::span<const float> x, std::span<const float> y, std::int64_t k) {
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::fabs(double{x[i]} - double{y[i]}));
  return most / std::sqrt(static_cast<double>(k));
}

Side repeated(const std::function<void()>& work) {
  const auto seconds_of = [=](std::int64_t times) {
    return wall_seconds_of([&] {
      for (std::int64_t i = 0; i < times; ++i) work();
    });
  };
  work();
  std::int64_t times = 1;
  while (seconds_of(times) < 0.7 * kTurn) times *= 2;
  return {[=] { return seconds_of(times); }, static_cast<double>(times), {}, work};
}

struct Comparison {
  double ratio = 0;  // speedup of the plan over OpenBLAS
  double others = 0;
};

Comparison compare(const Product& product, int threads, bool quick) {
  const auto rank = start(product, threads);
  const program::Program& program = rank->program();
  const std::span<float> a = floats(rank->input(program.inputs[0]));
  const std::span<float> b = floats(rank->input(program.inputs[1]));
  std::vector<float> raw(static_cast<std::size_t>(program.outputs[0].place.elements()));
  Random random(3);
  for (const std::span<float> operand : {a, b})
    for (float& element : operand) element = static_cast<float>(2 * random.uniform() - 1);

  const auto by_hand = [&] {
    const auto step = [&](std::int64_t elements, std::int64_t i) { return elements / product.times * i; };
    for (std::int64_t i = 0; i < product.times; ++i)
      openblas_gemm(threads, product.a_transposed, product.b_transposed, product.m, product.n, product.k,
                    a.data() + step(std::ssize(a), i), b.data() + step(std::ssize(b), i),
                    raw.data() + step(std::ssize(raw), i));
  };
  const int turns = quick ? 5 : 11;
  const Side sides[] = {repeated([&] { WEFT_CHECK(rank->step().ok()); }), repeated(by_hand)};
  const std::vector<Times> times = take_turns(sides, {turns, quick ? turns : 3 * turns, kPause});
  std::vector<float> c(raw.size());
  const exec::HostBytes held = or_throw(rank->read(program.outputs[0]));
  std::memcpy(c.data(), held.data(), held.bytes().size());
  if (difference(c, raw, product.k) > 1e-5) throw std::runtime_error("the two sides differ");

  const double ratio =
      threads == 1 ? times[1].processor / times[0].processor : times[1].median / times[0].median;
  const double others = std::max(times[0].others, times[1].others);
  const auto rate = [&](const Times& side) { return product.flops() / side.median / 1e9; };
  fmt::print("{:26} {:>7} {:>6} {:>13.1f} {:>5.1f}% {:>17.1f} {:>5.1f}% {:>7.2f} {:>8.2f}\n",
             name_of(product), threads, program.tasks.size(), rate(times[0]), times[0].spread * 100,
             rate(times[1]), times[1].spread * 100, ratio, others);
  std::fflush(stdout);
  return {ratio, others};
}

void run(bool quick) {
  fmt::print("{:26} {:>7} {:>6} {:>13} {:>6} {:>17} {:>6} {:>7} {:>8}\n", "m x n x k (' transposed)",
             "threads", "tasks", "Weft GFLOP/s", "+-", "OpenBLAS GFLOP/s", "+-", "ratio", "others");
  Comparison worst{std::numeric_limits<double>::infinity(), 0};
  for (int threads = 1; threads <= std::min(2, available_processors()); ++threads)
    for (const Product& product : kProducts) {
      const Comparison comparison = compare(product, threads, quick);
      worst.ratio = std::min(worst.ratio, comparison.ratio);
      if (threads > 1) worst.others = std::max(worst.others, comparison.others);
    }
  fmt::print("lowest ratio {:.2f}, wanted at least {}: {}{}\n", worst.ratio, kWanted,
             worst.ratio >= kWanted ? "met" : "missed",
             worst.others > kBusy ? ", but other programs were busy: run it again" : "");
}

}  // namespace

int main(int argc, char** argv) {
  if (!has_openblas()) {
    fmt::print("(no OpenBLAS in this build: nothing to compare matrix products with)\n");
    return 0;
  }
  try {
    run(argc > 1 && std::string_view(argv[1]) == "--quick");
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_products: {}\n", error.what());
    return 1;
  }
  return 0;
}
