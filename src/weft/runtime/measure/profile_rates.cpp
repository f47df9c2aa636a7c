#include "weft/runtime/measure/profile_rates.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "weft/base/machine.h"
#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/reduction.h"

namespace weft::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRuns = 5;

double seconds_from(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Executions of `work` per second, measured for at least `each`.
double rate_per_second(std::chrono::nanoseconds each, const std::function<void()>& work) {
  work();
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::int64_t done = 0;
    const auto start = Clock::now();
    do {
      work();
      ++done;
    } while (Clock::now() - start < each / kRuns);
    best = std::max(best, static_cast<double>(done) / seconds_from(start));
  }
  return best;
}

// The same on several threads at once, each on its own `bytes`; returns the sum of their rates.
double rate_per_second(std::int32_t threads, std::chrono::nanoseconds each, std::int64_t bytes,
                       const std::function<void(float* target, const float* source)>& work) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::barrier begin(threads);
  const auto run = [&](std::size_t thread) {
    const std::size_t elements = static_cast<std::size_t>(bytes) / sizeof(float);
    std::vector<float> target(elements, 1.0f), source(elements, 2.0f);
    begin.arrive_and_wait();
    rates[thread] = rate_per_second(each, [&] { work(target.data(), source.data()); });
  };
  std::vector<std::jthread> others;
  for (std::size_t thread = 1; thread < rates.size(); ++thread) others.emplace_back(run, thread);
  run(0);
  others.clear();  // joins
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

template <class Number>
double multiply_rate(std::int64_t side, std::chrono::nanoseconds each) {
  const auto elements = static_cast<std::size_t>(side * side);
  const std::vector<Number> a(elements, Number(0.5)), b(elements, Number(0.25));
  std::vector<Number> c(elements);
  const double products = rate_per_second(each, [&] {
    device::cpu::gemm(device::cpu::Transpose::no, device::cpu::Transpose::no, side, side, side, Number(1),
                      a.data(), side, b.data(), side, Number(0), c.data(), side);
  });
  return 2 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side) * products;
}

}  // namespace

std::vector<cost::Rate> measure_rates(const RateSizes& sizes) {
  const std::int64_t now = cost::seconds_since_1970();
  std::vector<cost::Rate> rates;
  const auto add = [&](std::string what, std::int32_t threads, std::int64_t bytes, double per_second) {
    rates.push_back({std::move(what), threads, bytes, per_second, now});
  };
  const std::int32_t cores = sizes.most_threads > 0 ? sizes.most_threads : available_processors();
  for (std::int32_t threads = 1; threads <= cores;
       threads = threads < cores ? std::min(2 * threads, cores) : cores + 1)
    for (const std::int64_t bytes : {sizes.cached_bytes, sizes.large_bytes}) {
      const auto copy = [&](float* target, const float* source) {
        std::memcpy(target, source, static_cast<std::size_t>(bytes));
      };
      const auto reduce = [&](float* target, const float* source) {
        device::cpu::reduce_pair(device::ElementType::f32, device::ReduceOp::max, target, target, source,
                                 static_cast<std::size_t>(bytes) / sizeof(float));
      };
      add("copy", threads, bytes,
          static_cast<double>(bytes) * rate_per_second(threads, sizes.each, bytes, copy));
      add("reduce f32", threads, bytes,
          2 * static_cast<double>(bytes) * rate_per_second(threads, sizes.each, bytes, reduce));
    }
  device::cpu::use_one_blas_thread();
  add("multiply f32", 1, sizes.matrix_side * sizes.matrix_side * 4,
      multiply_rate<float>(sizes.matrix_side, sizes.each));
  add("multiply f64", 1, sizes.matrix_side * sizes.matrix_side * 8,
      multiply_rate<double>(sizes.matrix_side, sizes.each));
  std::array<float, 2> pair = {1, 2};
  add("call", 1, 4, rate_per_second(sizes.each, [&] {
        device::cpu::reduce_pair(device::ElementType::f32, device::ReduceOp::max, pair.data(), pair.data(),
                                 &pair[1], 1);
      }));
  return rates;
}

}  // namespace weft::measure
