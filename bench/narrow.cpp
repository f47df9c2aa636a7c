// Products and attention in f32 and bf16: Weft and PyTorch.
//
//   build/release/bench_narrow [--quick] [FILTER]
//
// Causal attention with heads of 64, forward, and forward with gradients; PyTorch runs
// scaled_dot_product_attention. The four sides alternate in one run. Times are medians; ratios are
// speedups of Weft. WEFT_BF16_PRODUCTS selects the instructions for bf16 (amx, avx512, widened).
#include <algorithm>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "support/peer.h"
#include "support/training_rank.h"
#include "weft/base/check.h"
#include "weft/base/machine.h"
#include "weft/base/random.h"
#include "weft/device/cpu/bf16_gemm.h"
#include "weft/device/element_access.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace {

using namespace weft;
using namespace weft::bench;

constexpr double kPause = 0.1;  // OpenMP's threads spin for a while after a step
constexpr double kWanted = 0.9;
constexpr int kHeads = 4, kWidth = 64;

struct Work {
  std::string kernel;  // name in the peer's script
  std::vector<std::int64_t> sizes;

  std::string name() const { return fmt::format("{} {}", kernel, fmt::join(sizes, " x ")); }
  std::string peer(std::string_view dtype) const {
    return fmt::format("{} {} {}", kernel, dtype, fmt::join(sizes, " "));
  }
};

std::vector<Work> all_work() {
  std::vector<Work> all = {{"product", {2048, 2048, 2048}}, {"product", {2048, 384, 384}},
                           {"product", {2048, 1536, 384}},  {"product", {2048, 384, 1536}},
                           {"product", {500, 300, 700}},    {"product", {16, 768, 768}}};
  for (const std::int64_t length : {512, 1024, 2048, 4096, 8192})
    for (const char* const kernel : {"attention", "attention-back"})
      all.push_back({kernel, {kHeads, length, kWidth}});
  return all;
}

std::string plan_text(const Work& work, std::string_view dtype) {
  const std::int64_t a = work.sizes[0], b = work.sizes[1], c = work.sizes[2];
  if (work.kernel == "product")
    return fmt::format(
        "plan product\n"
        "%0 = input {{name=a, type={0}[m={1},k={3}]}}\n"
        "%1 = input {{name=b, type={0}[k={3},n={2}]}}\n"
        "%2 = contract %0, %1 {{to=[m,n]}}\n"
        "return c=%2\n",
        dtype, a, b, c);
  constexpr std::string_view kHow = "{over=t, along=s, inner=[e], divisor=8, causal=1}";
  std::string text = fmt::format(
      "plan attention\n"
      "%0 = input {{name=q, type={0}[h={1},s={2},e={3}]}}\n"
      "%1 = input {{name=k, type={0}[h={1},t={2},e={3}]}}\n"
      "%2 = input {{name=v, type={0}[h={1},t={2},f={3}]}}\n"
      "%3 = input {{name=dy, type={0}[h={1},s={2},f={3}]}}\n"
      "%4, %5 = attention %0, %1, %2 {4}\n",
      dtype, a, b, c, kHow);
  if (work.kernel == "attention") return text + "return y=%4\n";
  return text + fmt::format(
                    "%6, %7, %8 = attention-gradient %0, %1, %2, %4, %5, %3 {}\n"
                    "return y=%4, dq=%6, dk=%7, dv=%8\n",
                    kHow);
}

std::unique_ptr<exec::Rank> start(const Work& work, std::string_view dtype, int workers) {
  const auto graph =
      std::make_shared<const plan::Graph>(or_throw(plan::read(plan_text(work, dtype), ops::all())));
  auto rank = or_throw(
      exec::Rank::start(or_throw(program::compile(graph, {.workers = workers})), {.workers = workers}));
  Random random(3);
  for (const program::Port& port : rank->program().inputs) {
    const std::span<std::byte> bytes = rank->input(port);
    for (std::int64_t i = 0; i < port.place.elements(); ++i)
      device::store_element(port.place.dtype, bytes.data(), i, 2 * random.uniform() - 1);
  }
  return rank;
}

Side weft_side(exec::Rank& rank) {
  return side_of_steps([&rank](std::int64_t steps) {
    return wall_seconds_of([&] {
      for (std::int64_t i = 0; i < steps; ++i) WEFT_CHECK(rank.step().ok());
    });
  });
}

// Returns the speedup of bf16 over f32.
double compare(const Work& work, int threads, bool quick) {
  const auto wide = start(work, "f32", threads), narrow = start(work, "bf16", threads);
  std::vector<Side> sides = {weft_side(*wide), weft_side(*narrow)};
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string_view dtype : {"f32", "bf16"})
    if (auto peer = Peer::start(work.peer(dtype), threads, 1, "torch_on_demand.py"); peer.ok()) {
      Peer& there = **peer;
      sides.push_back(
          side_of_steps([&there](std::int64_t steps) { return there.train(steps); }, there.processes()));
      peers.push_back(std::move(*peer));
    }
  const int turns = quick ? 3 : 7;
  const std::vector<Times> times = take_turns(sides, {turns, quick ? turns : 3 * turns, kPause});
  const double gain = times[0].median / times[1].median;
  std::string row = fmt::format("{:30} {:>7} {:>10.3f} {:>10.3f} {:>9.2f}", work.name(), threads,
                                times[0].median * 1e3, times[1].median * 1e3, gain);
  if (times.size() == 4)
    row += fmt::format(" {:>10.3f} {:>10.3f} {:>7.2f} {:>7.2f}", times[2].median * 1e3, times[3].median * 1e3,
                       times[2].median / times[0].median, times[3].median / times[1].median);
  double others = 0;
  for (const Times& side : times) others = std::max(others, side.others);
  fmt::print("{} {:>8.2f}\n", row, others);
  std::fflush(stdout);
  return gain;
}

void run(bool quick, std::string_view filter) {
  fmt::print("bf16 by {}; ms\n", device::cpu::name(device::cpu::bf16_products()));
  fmt::print("{:30} {:>7} {:>10} {:>10} {:>9} {:>10} {:>10} {:>7} {:>7} {:>8}\n", "", "threads", "f32",
             "bf16", "bf16/f32", "torch f32", "torch bf16", "f32", "bf16", "others");
  double lowest = std::numeric_limits<double>::infinity();
  for (int threads = 1; threads <= std::min(2, available_processors()); ++threads)
    for (const Work& work : all_work())
      if (work.name().find(filter) != std::string::npos)
        lowest = std::min(lowest, compare(work, threads, quick));
  fmt::print("lowest bf16/f32 {:.2f}, wanted at least {}: {}\n", lowest, kWanted,
             lowest >= kWanted ? "met" : "missed");
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false;
  std::string_view filter;
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--quick")
      quick = true;
    else
      filter = argv[i];
  try {
    run(quick, filter);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_narrow: {}\n", error.what());
    return 1;
  }
  return 0;
}
