// Time to simulate steps: GPT-3 on 8 to 1,024 GPUs with equal ranks simulated once; up to 512, also
// every rank separately.
//
//   build/release/bench_simulating
//
// "compile" makes plans and programs of distinct ranks. "simulate" estimates their tasks and runs
// the events. Both are medians of repetitions; processor time. Exact times must equal those of the
// classes.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "weft/base/units.h"
#include "weft/language/bind.h"
#include "weft/language/shipped.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/spmd/localize.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/predict/sim/step/rank_classes.h"

namespace {

using namespace weft;

train::TrainingPlan gpt3(const language::Catalog& catalog, std::int64_t batch) {
  language::syntax::Name name;
  name.text = "gpt3_175b";
  language::BindOptions options;
  options.mode = language::Mode::train;
  options.precision = plan::DType::bf16;
  options.sizes.push_back({"b", batch, {}});
  options.sizes.push_back({"v", 51200, {}});
  return train::make_training_plan(language::bind(catalog, name, options).value().graph, {}).value();
}

template <class Work>
double median_of(int repetitions, Work&& work) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) times.push_back(bench::processor_seconds_of(work));
  return median(times);
}

bool run(const language::Catalog& catalog, std::int64_t nodes, bool exact) {
  cluster::Cluster cluster = catalog.clusters.find("superpod")->second;
  cluster.axes[0].size = nodes;
  const train::TrainingPlan training = gpt3(catalog, std::max<std::int64_t>(nodes, 8));
  const auto distribution =
      distribute::read_distribution(fmt::format("node={}: slice b; gpu=8: slice h, f, v, s", nodes)).value();
  distribute::DistributeOptions how;
  const std::vector<cost::MeshLink> links = cost::mesh_links(cluster, distribution.mesh).value();
  for (const cost::MeshLink& link : links)
    how.prices.push_back({link.latency_seconds, link.bytes_per_second});
  const auto plan = distribute::distribute(training.graph, distribution, how).value();
  const cost::StepCosts costs = cost::step_costs(cluster, plan.mesh).value();
  const sim::Numbering kinds = sim::rank_kinds(plan.graph, plan.mesh, plan.layouts);
  std::vector<std::shared_ptr<const program::Program>> programs;
  const double compile = median_of(3, [&] {
    programs.clear();
    for (std::size_t rank = 0; rank < kinds.size(); ++rank) {
      if (static_cast<std::size_t>(kinds[rank]) != programs.size()) continue;
      auto local = spmd::localize(plan.graph, plan.mesh, plan.layouts, static_cast<std::int32_t>(rank),
                                  spmd::Exchanges::stay)
                       .value();
      programs.push_back(std::make_shared<const program::Program>(
          program::compile(std::make_shared<const plan::Graph>(std::move(local.graph)), costs.compile)
              .value()));
    }
  });
  sim::Prediction prediction;
  const auto simulate = [&](bool every_rank) {
    const sim::PredictOptions options{.exact = every_rank, .timeline = false};
    prediction = sim::predict(plan.mesh, programs, kinds, costs, options).value();
  };
  const double classes = median_of(7, [&] { simulate(false); });
  const double seconds = prediction.seconds;
  fmt::print("{:>6} {:>9} {:>9} {:>10} {:>10} {:>10}", nodes * 8, programs[0]->tasks.size(),
             prediction.classes.size(), print_seconds(compile), print_seconds(classes), prediction.events);
  fmt::print(" {:>8.1f} M/s", static_cast<double>(prediction.events) / classes / 1e6);
  if (exact) {
    const double all = bench::processor_seconds_of([&] { simulate(true); });
    fmt::print(" {:>11} {:>10} {:>8.1f} M/s", print_seconds(all), prediction.events,
               static_cast<double>(prediction.events) / all / 1e6);
  }
  fmt::print("\n");
  const bool agrees = std::abs(prediction.seconds - seconds) <= 1e-9 * seconds;
  if (!agrees) fmt::print("exact disagrees: {} against {}\n", prediction.seconds, seconds);
  return agrees;
}

}  // namespace

int main() {
  language::Catalog catalog;
  language::load_shipped(catalog);
  fmt::print("{:>6} {:>9} {:>9} {:>10} {:>10} {:>10} {:>12} {:>11} {:>10}\n", "GPUs", "tasks", "classes",
             "compile", "simulate", "events", "", "exact", "events");
  bool all = true;
  for (const std::int64_t nodes : {1, 8, 64, 128}) all = run(catalog, nodes, nodes <= 64) && all;
  return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
