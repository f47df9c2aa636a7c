// One training step (forward, backward, Adam) of Weft and PyTorch, and a breakdown of Weft's time.
//
//   build/release/bench_training [--quick] [MODEL...]
//
// Both sides train the same model on batches in memory and alternate in one run. Times are wall
// time, medians of turns. "by processor" compares processor time instead, for a single thread,
// where other load would only add waiting. PyTorch's GPT is measured as usually written, and with
// workarounds for kernels that are slow in builds without MKL (see bench/peers). Unit times are
// those of one thread, compared with the roofline measured in the same run.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "support/hot_units.h"
#include "support/measure.h"
#include "support/peaks.h"
#include "support/peer.h"
#include "support/training_rank.h"
#include "weft/base/machine.h"
#include "weft/base/units.h"

namespace {

using namespace weft;
using namespace weft::bench;

struct Model {
  std::string name;
  std::int64_t labels;
  std::vector<std::string> peers;  // names in bench/peers
  int turns, quick_turns;
  int profiled_steps;
  std::string model = {}, precision = "f32";  // name of the shipped model, if different

  TrainingRank rank(int threads) const {
    return {model.empty() ? name : model, {.workers = threads, .labels = labels, .precision = precision}};
  }
};

const std::vector<Model> kModels = {
    {"digits_mlp", 10, {"digits_mlp"}, 15, 7, 201},
    {"digits_conv", 10, {"digits_conv"}, 15, 7, 101},
    {"char_gpt", 256, {"char_gpt", "char_gpt_tuned"}, 5, 3, 5},
    {"char_gpt_bf16", 256, {"char_gpt_bf16"}, 5, 3, 5, "char_gpt", "bf16"},
    {"char_gpt_f16", 256, {}, 5, 3, 5, "char_gpt", "f16"},
};

// Threads of other libraries spin for a while after a step, OpenBLAS's for about 60 ms.
constexpr double kPause = 0.1;

Side weft_side(TrainingRank& rank) {
  const auto train = [&rank](std::int64_t steps) {
    return wall_seconds_of([&] {
      for (std::int64_t i = 0; i < steps; ++i) rank.step();
    });
  };
  return side_of_steps(train);
}

Side peer_side(Peer& peer) {
  return side_of_steps([&peer](std::int64_t steps) { return peer.train(steps); }, peer.processes());
}

void print_row(std::string_view name, int threads, const Times& weft, const Times* peer) {
  const auto side = [](const Times& times) {
    return fmt::format("{:.3f} {:5.1f}%", times.median * 1e3, times.spread * 100);
  };
  fmt::print("{:16} {:>7} {:>17} {:>18} {:>15} {:>13} {:>7.2f}\n", name, threads, side(weft),
             peer == nullptr ? "-" : side(*peer),
             peer == nullptr ? "-" : fmt::format("{:.2f}x as fast", peer->median / weft.median),
             peer == nullptr || threads > 1 ? "-" : fmt::format("{:.2f}x", peer->processor / weft.processor),
             std::max(weft.others, peer == nullptr ? 0 : peer->others));
  std::fflush(stdout);
}

void compare(const Model& model, int threads, bool quick) {
  TrainingRank rank = model.rank(threads);
  std::vector<Side> sides = {weft_side(rank)};
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string& name : model.peers) {
    auto peer = Peer::start(name, threads);
    if (!peer.ok()) break;
    if ((*peer)->parameter_elements() != rank.parameter_elements())
      fmt::print("{}: PyTorch trains {} parameters, Weft {}\n", name, (*peer)->parameter_elements(),
                 rank.parameter_elements());
    peers.push_back(std::move(*peer));
    sides.push_back(peer_side(*peers.back()));
  }

  const int turns = quick ? model.quick_turns : model.turns;
  const std::vector<Times> times = take_turns(sides, {turns, quick ? turns : 3 * turns, kPause});
  if (peers.empty()) print_row(model.name, threads, times[0], nullptr);
  for (std::size_t i = 1; i < times.size(); ++i) print_row(model.peers[i - 1], threads, times[0], &times[i]);
}

void print_units(const Model& model, const GemmPeaks& gemm, bool quick) {
  TrainingRank rank = model.rank(1);
  rank.step();
  constexpr std::int64_t kLargest = 256'000'000;  // larger than any cache
  const Roof roof{gemm.best(), measure_triad(std::min(rank.rank().bytes(), kLargest))};
  fmt::print("\n{}: {} in memory, roof {:.1f} GFLOP/s and {:.1f} GB/s\n", model.name,
             print_bytes(static_cast<double>(rank.rank().bytes())), roof.flops_per_second / 1e9,
             roof.bytes_per_second / 1e9);
  print_hot_units(hot_units(rank, quick ? (model.profiled_steps + 1) / 2 : model.profiled_steps), roof, 10);
  std::fflush(stdout);
}

void run(const std::vector<std::string>& names, bool quick) {
  std::vector<Model> models;
  for (const Model& model : kModels)
    if (names.empty() || std::ranges::find(names, model.name) != names.end()) models.push_back(model);
  if (models.empty()) throw std::runtime_error("no such model: " + names.front());

  if (const auto peer = Peer::start(models.front().name, 1); peer.ok())
    fmt::print("PyTorch {}\n", (*peer)->version());
  else
    fmt::print("{}\n", peer.error().message);
  fmt::print("{:16} {:>7} {:>10} {:>6} {:>11} {:>6} {:>15} {:>13} {:>7}\n", "training step", "threads",
             "Weft ms", "+-", "PyTorch ms", "+-", "Weft is", "by processor", "others");
  for (const Model& model : models)
    for (int threads = 1; threads <= std::min(2, available_processors()); ++threads)
      compare(model, threads, quick);

  const GemmPeaks gemm = measure_gemm_peaks();
  fmt::print("\none thread: device::cpu::gemm {:.1f} GFLOP/s, OpenBLAS {}\n", gemm.weft / 1e9,
             gemm.openblas > 0 ? fmt::format("{:.1f} GFLOP/s", gemm.openblas / 1e9) : "not available");
  for (const Model& model : models) print_units(model, gemm, quick);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  const bool quick = std::erase(names, "--quick") > 0;
  try {
    run(names, quick);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_training: {}\n", error.what());
    return 1;
  }
  return 0;
}
