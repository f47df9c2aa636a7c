// Data-parallel training steps on several ranks of this machine: Weft and PyTorch.
//
//   build/release/bench_data_parallel [--quick] [--ranks N] [--threads N] [MODEL...]
//
// Weft's ranks are processes with shared memory, as in TRAIN ... ON LOCAL N; PyTorch's are
// processes with DistributedDataParallel over Gloo. Model, batch, optimizer and threads per rank
// are the same. The sides alternate in one run, and medians are compared. PyTorch's GPT is measured
// as usually written and tuned (bench/peers). Then a breakdown of a rank's time, medians over steps
// and ranks: waiting lasts from when a rank enters a collective until all ranks have.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "support/local_training.h"
#include "support/measure.h"
#include "support/peer.h"
#include "support/training_rank.h"
#include "weft/base/machine.h"
#include "weft/program/tasks/step_parts.h"
#include "weft/runtime/run/rank_program.h"

namespace {

using namespace weft;
using namespace weft::bench;

struct Model {
  std::string name;
  TrainedModel weft;
  std::vector<std::string> peers;  // names in bench/peers: as usually written, and tuned
  int turns, quick_turns;
  std::int64_t profiled_steps;
};

const std::vector<Model> kModels = {
    {"digits_mlp", {.model = "digits_mlp"}, {"digits_mlp"}, 15, 7, 200},
    {"large_mlp",
     {"digits_mlp", {{"b", 512, {}}, {"p", 784, {}}, {"f", 2048, {}}}},
     {"large_mlp"},
     15,
     7,
     20},
    {"char_gpt", {.model = "char_gpt"}, {"char_gpt", "char_gpt_tuned"}, 5, 3, 3},
};

// Threads of other libraries spin for a while after a step, OpenBLAS's for about 60 ms.
constexpr double kPause = 0.1;

struct Request {
  bool quick = false;
  int ranks = 2, threads = 1;
  std::vector<std::string> names;

  bool wants(const Model& model) const {
    return names.empty() || std::ranges::find(names, model.name) != names.end();
  }
  run::LocalRanksOptions options() const {
    run::LocalRanksOptions options;
    options.ranks = ranks;
    options.workers = threads;
    options.overlap = ranks * (threads + 1) <= available_processors();  // as in TRAIN
    return options;
  }
};

void compare(const Model& model, const LocalTraining& training, const Request& request,
             std::string_view where_time_goes) {
  std::vector<Side> sides = {
      side_of_steps([&](std::int64_t steps) { return training.train(steps); }, {}, false)};
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string& name : model.peers) {
    auto started = Peer::start(name, request.threads, request.ranks);
    if (!started.ok()) break;
    Peer& peer = *peers.emplace_back(std::move(*started));
    if (peer.parameter_elements() != training.parameter_elements())
      throw std::runtime_error(fmt::format("{}: PyTorch trains {} parameters, Weft {}", name,
                                           peer.parameter_elements(), training.parameter_elements()));
    sides.push_back(
        side_of_steps([&peer](std::int64_t steps) { return peer.train(steps); }, peer.processes()));
  }
  const int turns = request.quick ? model.quick_turns : model.turns;
  const std::vector<Times> times = take_turns(sides, {turns, request.quick ? turns : 2 * turns, kPause});
  const auto print_side = [](const Times& side) {
    return fmt::format("{:.3f} {:5.1f}%", side.median * 1e3, side.spread * 100);
  };
  if (peers.empty())
    fmt::print("{:16} {:>17} {:>18} {:>15} {}\n", model.name, print_side(times[0]), "-", "-",
               where_time_goes);
  for (std::size_t i = 1; i < times.size(); ++i)
    fmt::print("{:16} {:>17} {:>18} {:>15} {}\n", model.peers[i - 1], print_side(times[0]),
               print_side(times[i]), fmt::format("{:.2f}x as fast", times[i].median / times[0].median),
               where_time_goes);
}

struct Parts {
  double computing = 0, waiting = 0, moving = 0, rest = 0;
};

// Breakdown of one rank's step, up to its last task.
Parts parts_of(const std::vector<program::Program>& programs, const LocalTraining::Timelines& timelines,
               std::size_t rank, std::size_t step) {
  const program::Program& program = programs[rank];
  const program::Timeline& mine = timelines[rank][step];
  const program::StepParts found = program::step_parts(program, mine);
  // The k-th collective of one rank matches the k-th of every other.
  std::vector<double> all_there;
  for (std::size_t r = 0; r < programs.size(); ++r) {
    std::size_t k = 0;
    for (std::size_t t = 0; t < programs[r].tasks.size(); ++t) {
      if (!std::holds_alternative<program::Exchange>(programs[r].units[programs[r].tasks[t].unit].kernel))
        continue;
      if (k == all_there.size()) all_there.push_back(0);
      all_there[k] = std::max(all_there[k], timelines[r][step].tasks[t].begin);
      ++k;
    }
  }
  double waiting = 0;
  std::size_t k = 0;
  for (std::size_t t = 0; t < program.tasks.size(); ++t)
    if (std::holds_alternative<program::Exchange>(program.units[program.tasks[t].unit].kernel))
      waiting += std::max(0.0, all_there[k++] - mine.tasks[t].begin);
  waiting = std::min(waiting, found.exposed);
  return {found.computing, waiting, found.exposed - waiting, found.idle};
}

std::string profile(const Model& model, const LocalTraining& training, const Request& request) {
  const run::LocalRanksOptions options = request.options();
  const auto timelines = training.timelines(model.profiled_steps, options.overlap);
  std::vector<program::Program> programs;
  for (std::int32_t rank = 0; rank < options.ranks; ++rank)
    programs.push_back(or_throw(run::compile_for_rank(training.plan(), rank, options)));
  std::vector<double> computing, waiting, moving, rest;
  for (std::size_t step = 0; step < timelines[0].size(); ++step)
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      const Parts parts = parts_of(programs, timelines, rank, step);
      computing.push_back(parts.computing);
      waiting.push_back(parts.waiting);
      moving.push_back(parts.moving);
      rest.push_back(parts.rest);
    }
  const auto milliseconds = [](std::vector<double>& seconds) { return median(std::move(seconds)) * 1e3; };
  return fmt::format("{:>10.3f} {:>8.3f} {:>8.3f} {:>8.3f}", milliseconds(computing), milliseconds(moving),
                     milliseconds(waiting), milliseconds(rest));
}

void compare(const Request& request) {
  fmt::print("data parallel, {} ranks of {} thread{}{}\n", request.ranks, request.threads,
             request.threads == 1 ? "" : "s", request.options().overlap ? "" : ", no overlap");
  fmt::print("{:16} {:>10} {:>6} {:>11} {:>6} {:>15} {:>10} {:>8} {:>8} {:>8}\n", "training step", "Weft ms",
             "+-", "PyTorch ms", "+-", "Weft is", "computing", "moving", "waiting", "rest");
  for (const Model& model : kModels) {
    if (!request.wants(model)) continue;
    const LocalTraining training(model.weft, request.options());
    compare(model, training, request, profile(model, training, request));
    std::fflush(stdout);
  }
}

Request read(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    int* const number = word == "--ranks" ? &request.ranks : word == "--threads" ? &request.threads : nullptr;
    if (word == "--quick")
      request.quick = true;
    else if (number == nullptr)
      request.names.push_back(word);
    else if (i + 1 == argc || (*number = std::atoi(argv[++i])) < 1)
      throw std::runtime_error(word + " takes a number");
  }
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = weft::run::rank_main()) return *code;
  try {
    compare(read(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_data_parallel: {}\n", error.what());
    return 1;
  }
  return 0;
}
