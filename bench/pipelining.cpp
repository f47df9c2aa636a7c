// Time to plan a step with stages and micro-batches, and how it grows.
//
//   build/release/bench_pipelining
//
// "search" is the whole search, from a one-device plan to the best plan. "price" is the schedule
// simulation of a plan with known costs of parts.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>

#include <fmt/format.h>

#include "support/measure.h"
#include "support/training_rank.h"
#include "weft/base/units.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/planner/search/pipeline/choose_pipeline.h"
#include "weft/predict/cost/step_costs.h"

namespace {

using namespace weft;
using namespace weft::bench;

search::Machine machine_of(const cluster::Cluster& cluster) {
  search::Machine machine;
  machine.costs = [&cluster](const plan::Mesh& mesh) { return cost::step_costs(cluster, mesh); };
  machine.prices = [&cluster](const plan::Mesh& mesh) -> Result<std::vector<distribute::AxisCost>> {
    WEFT_TRY(links, cost::mesh_links(cluster, mesh));
    std::vector<distribute::AxisCost> prices;
    for (const cost::MeshLink& link : links) prices.push_back({link.latency_seconds, link.bytes_per_second});
    return prices;
  };
  return machine;
}

void search_once(std::int64_t nodes, std::int64_t layers, std::int64_t batch) {
  cluster::Cluster cluster = shipped().clusters.find("superpod")->second;
  cluster.axes.front().size = nodes;
  std::map<std::int64_t, train::TrainingPlan> plans;
  const auto plan_of = [&](std::int64_t rows) -> Result<const plan::Graph*> {
    const auto found = plans.find(rows);
    if (found != plans.end()) return &found->second.graph;
    language::BindOptions options;
    options.mode = language::Mode::train;
    options.precision = plan::DType::bf16;
    options.sizes = {{"b", rows, {}}, {"layers", layers, {}}};
    WEFT_TRY(bound, language::bind(shipped(), language::syntax::Name{"gpt3_175b", {}}, options));
    WEFT_TRY(training, train::make_training_plan(std::move(bound.graph), {}));
    return &plans.emplace(rows, std::move(training)).first->second.graph;
  };
  search::PipelineProblem problem;
  problem.plan = or_throw(plan_of(batch));
  problem.batch = "b";
  problem.rows = batch;
  problem.plan_of = plan_of;
  problem.cluster = &cluster;
  const search::Machine machine = machine_of(cluster);
  problem.machine = &machine;
  problem.memory_bytes = cluster.device.memory_bytes;
  std::string found;
  const double seconds = wall_seconds_of([&] {
    const auto choice = search::choose_pipeline(problem);
    found = choice.ok() ? fmt::format("{}, {}", print_seconds(choice->priced.seconds),
                                      distribute::print(choice->distribution))
                        : choice.error().message;
  });
  fmt::print("search {:>6} {:>6} {:>6} {:>10}  {}\n", cluster.devices(), layers, batch,
             print_seconds(seconds), found);
}

void price_once(std::int32_t stages, std::int64_t micro_batches, std::int32_t chunks) {
  search::PartCost one;
  one.forward = one.backward = one.weight = 1e-3;
  const search::PartCosts costs(static_cast<std::size_t>(stages * chunks * 2), one);
  const auto* text = or_throw(pipeline::find_schedule(chunks > 1 ? "interleaved" : "1f1b"));
  double bubble = 0;
  const double seconds = wall_seconds_of([&] {
    auto order = or_throw(search::unfold({stages, chunks, micro_batches, text}));
    const auto cuts = search::cut_parts(costs, static_cast<std::size_t>(order.schedule.positions()));
    bubble = or_throw(search::estimate_pipeline(costs, std::move(order), cuts, {})).bubble_rate();
  });
  fmt::print("price  {:>6} {:>6} {:>6} {:>10}  bubble {:.1f} %\n", stages, micro_batches, chunks,
             print_seconds(seconds), 100 * bubble);
}

}  // namespace

int main() {
  try {
    fmt::print("{:6} {:>6} {:>6} {:>6} {:>10}\n", "", "GPUs", "layers", "b", "time");
    for (const std::int64_t layers : {24, 48, 96}) search_once(128, layers, 1536);
    for (const std::int64_t nodes : {8, 32, 128, 512}) search_once(nodes, 96, 12 * nodes);
    fmt::print("{:6} {:>6} {:>6} {:>6} {:>10}\n", "", "stages", "micro", "chunks", "time");
    for (const std::int32_t stages : {4, 16, 64}) price_once(stages, 128, 1);
    for (const std::int64_t micro_batches : {32, 128, 512}) price_once(16, micro_batches, 1);
    for (const std::int32_t chunks : {2, 4, 8}) price_once(16, 128, chunks);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_pipelining: {}\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
