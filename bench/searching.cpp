// Time to search for a distribution, by layers, GPUs and mesh axes.
//
//   build/release/bench_searching
//
// Each row is one search in a separate process: wall time as for EXPLAIN, from a one-device plan to
// the best distribution, predicted with all layers. "peak" is the peak memory of that process. A
// search that finds no plan that fits is reported with its time.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "support/training_rank.h"
#include "weft/base/units.h"
#include "weft/planner/search/distribution/choose_distribution.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/roofline.h"
#include "weft/predict/cost/step_costs.h"

namespace {

using namespace weft;
using namespace weft::bench;

struct Case {
  std::string model;
  std::vector<std::int64_t> axes = {};  // sizes of cluster axes, outermost first
  std::int64_t batch = 8;
  std::int64_t layers = 0;       // 0: the model's own number
  std::int64_t estimates = 300;  // search_limit
};

// H100s with NVLink along the innermost axis and InfiniBand along others, at half the bandwidth
// from the third axis on.
cluster::Cluster cluster_of(const std::vector<std::int64_t>& sizes) {
  static const char* const names[] = {"gpu", "node", "rack"};
  const cluster::Cluster& pod = shipped().clusters.find("pod")->second;
  cluster::Cluster made{"cluster", pod.device, {}};
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    const std::size_t from_inside = sizes.size() - 1 - a;
    cluster::Link link = pod.axes[from_inside == 0 ? 1 : 0].link;
    if (from_inside >= 2) link.bytes_per_second /= 2;
    made.axes.push_back({names[from_inside], sizes[a], link});
  }
  return made;
}

search::Machine machine_of(const cluster::Cluster& cluster) {
  search::Machine machine;
  machine.costs = [&cluster](const plan::Mesh& mesh) { return cost::step_costs(cluster, mesh); };
  machine.prices = [&cluster](const plan::Mesh& mesh) -> Result<std::vector<distribute::AxisCost>> {
    WEFT_TRY(links, cost::mesh_links(cluster, mesh));
    std::vector<distribute::AxisCost> prices;
    for (const cost::MeshLink& link : links) prices.push_back({link.latency_seconds, link.bytes_per_second});
    return prices;
  };
  machine.peak = [&cluster](plan::DType dtype) { return cost::peak_rate(cluster.device, dtype); };
  return machine;
}

// The default strategy; keeps its counters even if no plan fits.
class Counted final : public search::DistributionStrategy {
 public:
  search::SearchOutcome search(const search::DistributionSpace& space, search::Evaluator& evaluator,
                               const search::DistributionBudget& budget) const override {
    meshes = space.meshes().size();
    search::SearchOutcome outcome = search::by_parts().search(space, evaluator, budget);
    estimates = outcome.estimates;
    ended = outcome.ended;
    return outcome;
  }
  mutable std::size_t meshes = 0;
  mutable std::int64_t estimates = 0;
  mutable search::Ended ended = search::Ended::settled;
};

std::string peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kibibytes = 0; word == "VmHWM:" && status >> kibibytes) return print_bytes(kibibytes * 1024);
  return "-";
}

void search_once(const Case& each) {
  const cluster::Cluster cluster = cluster_of(each.axes);
  language::BindOptions options;
  options.mode = language::Mode::train;
  options.precision = plan::DType::bf16;
  options.sizes = {{"b", each.batch, {}}};
  if (each.layers > 0) options.sizes.push_back({"layers", each.layers, {}});
  auto bound = or_throw(language::bind(shipped(), language::syntax::Name{each.model, {}}, options));
  const auto training = or_throw(train::make_training_plan(std::move(bound.graph), {}));
  const Counted strategy;
  search::ChooseOptions choose;
  choose.memory_bytes = cluster.device.memory_bytes;
  choose.budget.estimates = each.estimates;
  choose.strategy = &strategy;
  choose.alternatives = false;
  std::string found;
  const double seconds = wall_seconds_of([&] {
    const auto choice = search::choose_distribution(training.graph, cluster, machine_of(cluster), choose);
    found = choice.ok() ? distribute::print(choice->distribution) : "nothing fits";
  });
  fmt::print("{:10} {:>6} {:>6} {:>5} {:>6} {:>9} {:>9} {:>10} {:>10}  {}\n", each.model,
             training.graph.node_count(), cluster.devices(), cluster.axes.size(), strategy.meshes,
             fmt::format("{}{}", strategy.estimates, strategy.ended == search::Ended::settled ? "" : "+"),
             print_seconds(seconds), print_seconds(seconds / static_cast<double>(strategy.estimates)),
             peak_memory(), found);
}

// In a child process: no search reuses results of another, and its memory can be measured.
bool run(const Case& each) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    try {
      search_once(each);
      std::fflush(stdout);
      _exit(EXIT_SUCCESS);
    } catch (const std::exception& error) {
      fmt::print(stderr, "bench_searching: {}: {}\n", each.model, error.what());
      _exit(EXIT_FAILURE);
    }
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main() {
  shipped();
  std::vector<Case> cases;
  for (const std::string model : {"gpt2", "llama2_7b", "gpt3_175b"})
    for (const std::int64_t nodes : {1, 8, 128})
      // Without pipelines and recomputation, one sequence of GPT-3 fills a node.
      cases.push_back(
          {model, {nodes, 8}, model == "gpt3_175b" ? std::max<std::int64_t>(nodes, 8) : nodes * 8});
  cases.push_back({"gpt2", {128, 8}, 1024, 0, 10'000});
  for (const std::int64_t layers : {24, 48, 96}) cases.push_back({"gpt2", {8, 8}, 64, layers});
  cases.push_back({"gpt2", {64}, 64});
  cases.push_back({"gpt2", {2, 4, 8}, 64});
  fmt::print("{:10} {:>6} {:>6} {:>5} {:>6} {:>9} {:>9} {:>10} {:>10}  {}\n", "search", "nodes", "GPUs",
             "axes", "meshes", "estimates", "time", "each", "peak", "found");
  bool all = true;
  for (const Case& each : cases) all = run(each) && all;
  return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
