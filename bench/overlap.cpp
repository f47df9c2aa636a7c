// Overlap of communication and computation: exposed communication per step with and without it.
//
//   build/release/bench_overlap [--ranks N] [--threads N]
//
// First data-parallel steps on ranks of this machine, measured and predicted; turns with and
// without overlap alternate. With overlap a rank has one more thread, for communication. With fewer
// processors than threads it slows down a computing thread. Then predicted steps on clusters of
// GPUs.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/local_training.h"
#include "support/measure.h"
#include "support/training_rank.h"
#include "weft/base/machine.h"
#include "weft/base/units.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/operator_time.h"
#include "weft/predict/cost/statistics.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/program/tasks/step_parts.h"
#include "weft/runtime/run/rank_program.h"

namespace {

using namespace weft;
using namespace weft::bench;

struct Step {
  double seconds = 0, exposed = 0;
  double share() const { return seconds > 0 ? exposed / seconds : 0; }
};

std::string print(const Step& step) {
  return fmt::format("{:>10} {:>5.1f}%", print_seconds(step.seconds), step.share() * 100);
}

// Rank 0's median step and its exposed communication.
Step measured(const program::Program& program, const std::vector<program::Timeline>& timelines) {
  std::vector<double> seconds, exposed;
  for (const program::Timeline& timeline : timelines) {
    const program::StepParts parts = program::step_parts(program, timeline);
    seconds.push_back(parts.seconds());
    exposed.push_back(parts.exposed);
  }
  return {median(std::move(seconds)), median(std::move(exposed))};
}

Step predicted(const distribute::DistributedPlan& plan, const cost::StepCosts& costs, bool overlap) {
  const sim::PredictOptions options{.overlap = overlap, .timeline = false};
  const auto found = or_throw(sim::predict(plan.graph, plan.mesh, plan.layouts, costs, options));
  return {found.seconds, found.exposed_communication_seconds};
}

void print_head(std::string_view what) {
  fmt::print("{:58} {:>18} {:>18}\n{:58} {:>18} {:>18}\n", what, "no overlap", "overlap", "", "step exposed",
             "step exposed");
}

struct Request {
  int ranks = 2, threads = 1;
};

void on_this_machine(const TrainedModel& model, std::string_view name, std::int64_t steps,
                     const Request& request) {
  run::LocalRanksOptions options;
  options.ranks = request.ranks;
  options.workers = request.threads;
  const LocalTraining training(model, options);
  const program::Program program = or_throw(run::compile_for_rank(training.plan(), 0, options));
  constexpr int kTurns = 3;
  std::array<std::vector<program::Timeline>, 2> timelines;  // without, with
  for (int turn = 0; turn < kTurns; ++turn)
    for (const bool overlap : {false, true}) {
      LocalTraining::Timelines taken = training.timelines(steps, overlap);
      std::ranges::move(taken[0], std::back_inserter(timelines[overlap ? 1 : 0]));
    }

  // Uses measured unit times, as EXPLAIN ANALYZE does.
  auto statistics = or_throw(cost::Statistics::open(":memory:", cost::Access::write));
  const Status learned = cost::learn(statistics, program, timelines[0], {options.ranks, options.workers});
  if (!learned.ok()) throw std::runtime_error(learned.error().message);
  const cluster::Cluster here{fmt::format("LOCAL {}", options.ranks),
                              shipped().devices.find("cpu_core")->second,
                              {cluster::Axis{"rank", options.ranks, {}}}};
  const cost::StepCosts costs =
      or_throw(cost::step_costs(here, training.plan().mesh, {.statistics = &statistics}));
  fmt::print("{:58} {:>18} {:>18}\n", fmt::format("{}, measured", name),
             print(measured(program, timelines[0])), print(measured(program, timelines[1])));
  fmt::print("{:58} {:>18} {:>18}\n", fmt::format("{}, predicted", name),
             print(predicted(training.plan(), costs, false)), print(predicted(training.plan(), costs, true)));
  std::fflush(stdout);
}

struct Planned {
  std::string model, cluster, distribution;
  std::int64_t batch;
};

const std::vector<Planned> kPlanned = {
    {"gpt2", "dgx_h100", "gpu=8: slice b", 64},
    {"gpt2", "pod", "node=4: slice b; gpu=8: slice b", 256},
    {"llama2_7b", "pod", "node=4: slice b, shard optimizer; gpu=8: slice h, f, v", 64},
    {"gpt2", "ethernet", "node=8: slice b", 64},
};

void on_a_cluster(const Planned& planned) {
  const cluster::Cluster& cluster = shipped().clusters.find(planned.cluster)->second;
  const train::TrainingPlan training = training_plan(planned.model, {{"b", planned.batch, {}}});
  const auto distribution = or_throw(distribute::read_distribution(planned.distribution));
  distribute::DistributeOptions how;
  for (const cost::MeshLink& link : or_throw(cost::mesh_links(cluster, distribution.mesh)))
    how.prices.push_back({link.latency_seconds, link.bytes_per_second});
  const auto plan = or_throw(distribute::distribute(training.graph, distribution, how));
  const cost::StepCosts costs = or_throw(cost::step_costs(cluster, plan.mesh));
  fmt::print("{:58} {:>18} {:>18}\n",
             fmt::format("{} on {}, {}", planned.model, planned.cluster, planned.distribution),
             print(predicted(plan, costs, false)), print(predicted(plan, costs, true)));
  std::fflush(stdout);
}

void compare(const Request& request) {
  const int threads = request.ranks * (request.threads + 1);
  print_head(fmt::format("{} ranks of {} thread{} on {} processors", request.ranks, request.threads,
                         request.threads == 1 ? "" : "s", available_processors()));
  if (threads > available_processors()) fmt::print("(with overlap {} threads share them)\n", threads);
  on_this_machine({.model = "digits_mlp"}, "digits_mlp", 200, request);
  on_this_machine({"digits_mlp", {{"b", 512, {}}, {"p", 784, {}}, {"f", 2048, {}}}}, "large_mlp", 10,
                  request);
  on_this_machine({.model = "char_gpt"}, "char_gpt", 1, request);
  fmt::print("\n");
  print_head("predicted for GPUs");
  for (const Planned& planned : kPlanned) on_a_cluster(planned);
}

Request read(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    int* const number = word == "--ranks" ? &request.ranks : word == "--threads" ? &request.threads : nullptr;
    if (number == nullptr || i + 1 == argc || (*number = std::atoi(argv[++i])) < 1)
      throw std::runtime_error("expected --ranks N or --threads N, found " + word);
  }
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = weft::run::rank_main()) return *code;
  try {
    compare(read(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_overlap: {}\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
