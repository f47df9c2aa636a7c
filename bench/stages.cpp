// A pipelined training step on several ranks of this machine: Weft and PyTorch.
//
//   build/release/bench_stages [--quick] [--ranks N]
//
// A small GPT is distributed over the ranks in stages, with four micro-batches per batch. Weft's
// ranks are processes with shared memory, as in TRAIN ... ON LOCAL N; PyTorch's run a hand-written
// 1F1B over Gloo (bench/peers). Model, batch, optimizer, micro-batches and cuts at half blocks are
// the same. The sides alternate in one run, and medians are compared.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/local_training.h"
#include "support/measure.h"
#include "support/peer.h"
#include "support/training_rank.h"
#include "weft/base/machine.h"
#include "weft/runtime/run/rank_program.h"

namespace {

using namespace weft;
using namespace weft::bench;

constexpr std::string_view kPeer = "char_gpt_stages";
constexpr double kPause = 0.1;  // threads of other libraries spin for a while after a step

TrainedModel gpt_in(std::int32_t stages, std::string_view schedule) {
  return {"char_gpt",
          {{"b", 8, {}}, {"s", 64, {}}, {"d", 128, {}}, {"h", 4, {}}, {"layers", 4, {}}},
          fmt::format("stage={}: stage; micro=4; schedule {}", stages, schedule)};
}

void compare(std::int32_t ranks, bool quick) {
  run::LocalRanksOptions options;
  options.ranks = ranks;
  options.overlap = 2 * ranks <= available_processors();  // as in TRAIN
  const std::vector<std::string> schedules = {"1f1b", "zb_h1"};
  std::vector<std::unique_ptr<LocalTraining>> trainings;
  std::vector<Side> sides;
  for (const std::string& schedule : schedules) {
    LocalTraining& training =
        *trainings.emplace_back(std::make_unique<LocalTraining>(gpt_in(ranks, schedule), options));
    sides.push_back(side_of_steps([&](std::int64_t steps) { return training.train(steps); }, {}, false));
  }
  auto peer = Peer::start(kPeer, 1, ranks);
  if (peer.ok()) {
    if ((*peer)->parameter_elements() != trainings.front()->parameter_elements())
      throw std::runtime_error(fmt::format("PyTorch trains {} parameters, Weft {}",
                                           (*peer)->parameter_elements(),
                                           trainings.front()->parameter_elements()));
    Peer& other = **peer;
    sides.push_back(
        side_of_steps([&other](std::int64_t steps) { return other.train(steps); }, other.processes()));
  }
  const int turns = quick ? 3 : 7;
  const std::vector<Times> times = take_turns(sides, {turns, 2 * turns, kPause});
  const auto row = [&](std::string_view name, const Times& side) {
    fmt::print("{:>6} {:16} {:>10.2f} {:>6.1f}%{}\n", ranks, name, side.median * 1e3, side.spread * 100,
               peer.ok() ? fmt::format(" {:>8.2f}x as fast", times.back().median / side.median) : "");
  };
  for (std::size_t i = 0; i < schedules.size(); ++i) row("Weft " + schedules[i], times[i]);
  if (peer.ok()) row("PyTorch 1F1B", times.back());
  std::fflush(stdout);
}

void measure(int argc, char** argv) {
  bool quick = false;
  std::vector<std::int32_t> ranks = {2, 4};
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick")
      quick = true;
    else if (word == "--ranks" && i + 1 < argc && std::atoi(argv[i + 1]) > 0)
      ranks = {std::atoi(argv[++i])};
    else
      throw std::runtime_error(fmt::format("usage: bench_stages [--quick] [--ranks N], found {}", word));
  }
  if (const auto peer = Peer::start(kPeer, 1); peer.ok())
    fmt::print("PyTorch {}\n", (*peer)->version());
  else
    fmt::print("{}\n", peer.error().message);
  fmt::print("{:>6} {:16} {:>10} {:>7}\n", "stages", "", "ms/step", "+-");
  for (const std::int32_t count : ranks) compare(count, quick);
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = weft::run::rank_main()) return *code;
  try {
    measure(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_stages: {}\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
