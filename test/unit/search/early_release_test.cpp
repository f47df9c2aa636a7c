// Early release on measured models: DAPPLE's profiles as steps whose gradients are summed in
// buckets, in one call each and in partitions of these. Simulated like plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/formats/profile_text.h"
#include "weft/parallel/partition/buckets.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/planner/search/bucket/merge_exchanges.h"
#include "weft/planner/search/bucket/partition_all_reduces.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/predict/sim/step/predict.h"

namespace weft::formats {
namespace {

namespace fs = std::filesystem;

struct Layer {
  std::int64_t numbers = 0;
  double backward = 0;
};

// The layers of a profile that have parameters, in the order in which their gradients are computed.
std::vector<Layer> layers_of(const partition::Profile& profile) {
  std::vector<Layer> layers;
  double backward = 0;
  const std::vector<std::int32_t> order = partition::topological_order(profile.dag()).value();
  for (auto n = order.rbegin(); n != order.rend(); ++n) {
    const partition::ProfileNode& node = profile.nodes[static_cast<std::size_t>(*n)];
    backward += node.backward / 1e3;
    if (node.parameters < 4) continue;
    layers.push_back({static_cast<std::int64_t>(node.parameters) / 4, backward});
    backward = 0;
  }
  return layers;
}

// Each layer computes a gradient, which is reduced and read.
distribute::DistributedPlan step_of(std::span<const Layer> layers) {
  std::string text = "plan p\n", outputs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    text += fmt::format("%{} = input {{name=x{}, type=f32[p{}={}], layout=\"partial(sum) on gpu\"}}\n", 4 * i,
                        i, i, layers[i].numbers);
    text += fmt::format("%{} = add %{}, %{} @made{}\n", 4 * i + 1, 4 * i, 4 * i, i);
    text += fmt::format("%{} = all-reduce %{} {{axis=gpu}}\n", 4 * i + 2, 4 * i + 1);
    text += fmt::format("%{} = mul %{}, %{} @read{}\n", 4 * i + 3, 4 * i + 2, 4 * i + 2, i);
    outputs += fmt::format("{}y{}=%{}", i > 0 ? ", " : "", i, 4 * i + 3);
  }
  distribute::DistributedPlan plan;
  plan.mesh = {{{"gpu", 4}}};
  plan.graph = plan::read(text + "return " + outputs + "\n", ops::all()).value();
  plan.layouts = spmd::infer_layouts(plan.graph, plan.mesh).value();
  plan.origin.resize(plan.graph.node_count());
  return plan;
}

// A layer's backward pass takes its measured time, its update reads and writes five times its bytes
// at 200 GB/s, and a call takes its latency plus the time for its bytes.
cost::StepCosts costs_of(std::span<const Layer> layers, const partition::Wire& wire) {
  cost::StepCosts costs;
  std::vector<Layer> known(layers.begin(), layers.end());
  costs.compute = [known](const program::Program& program, const program::Task& task) -> cost::TaskCost {
    const program::Unit& unit = program.units[task.unit];
    if (unit.nodes.empty()) return {};
    const plan::Node& node = program.graph->node(unit.nodes[0]);
    if (!node.label.valid()) return {};
    const std::string label(program.graph->text(node.label));
    const double share = static_cast<double>(task.end - task.begin) / static_cast<double>(unit.items);
    const Layer& layer = known[static_cast<std::size_t>(std::stoi(label.substr(4)))];
    const double read = static_cast<double>(layer.numbers) * 4 * 5 / 200e9;
    return {share * (label.starts_with("made") ? layer.backward : read), cost::Source::measured};
  };
  costs.exchange = [wire](const program::Exchange&, std::size_t, std::int64_t bytes) -> cost::ExchangeCost {
    return {wire.latency, static_cast<double>(bytes) / wire.bytes_per_second, "direct"};
  };
  return costs;
}

distribute::DistributedPlan fused(const distribute::DistributedPlan& plan, std::span<const Layer> layers) {
  std::vector<partition::Tensor> chain;
  for (const Layer& layer : layers) chain.push_back({.bytes = static_cast<double>(layer.numbers) * 4});
  std::vector<std::vector<plan::NodeId>> buckets;
  std::size_t begin = 0;
  for (const std::int32_t end : partition::fixed_buckets(chain, partition::kUsualBucketBytes)) {
    buckets.emplace_back();
    for (; begin < static_cast<std::size_t>(end); ++begin) buckets.back().emplace_back(4 * begin + 2);
  }
  return search::merge_exchanges(plan, buckets).value();
}

std::vector<std::int64_t> bytes_of(const plan::Graph& graph) {
  std::vector<std::int64_t> bytes(graph.node_count());
  for (std::size_t n = 0; n < bytes.size(); ++n)
    if (const plan::NodeView node = graph.view(plan::NodeId(n)); &node.op() == &ops::all_reduce())
      for (std::size_t i = 0; i < node.input_count(); ++i) bytes[n] += node.input_type(i).bytes();
  return bytes;
}

struct Simulated {
  double seconds = 0;
  std::map<std::string, double> released;  // when the first reader of a layer's sum may begin
};

Simulated simulate(const distribute::DistributedPlan& plan, const cost::StepCosts& costs) {
  const sim::Prediction prediction = sim::predict(plan.graph, plan.mesh, plan.layouts, costs).value();
  Simulated made{prediction.seconds, {}};
  const sim::RankClass& ranks = prediction.classes.at(0);
  const program::Program& program = *ranks.program;
  for (const program::Task& task : program.tasks) {
    const program::Unit& unit = program.units[task.unit];
    if (unit.nodes.empty()) continue;
    const plan::Node& node = program.graph->node(unit.nodes[0]);
    if (!node.label.valid()) continue;
    const std::string label(program.graph->text(node.label));
    if (!label.starts_with("read")) continue;
    double there = 0;
    for (const std::uint32_t wait : task.waits) there = std::max(there, ranks.timeline.tasks[wait].end);
    const auto [found, is_new] = made.released.try_emplace(label, there);
    if (!is_new) found->second = std::min(found->second, there);
  }
  return made;
}

TEST(EarlyRelease, IsStrictlyFasterThanFusedOnProfiles) {
  const fs::path folder = fs::path(WEFT_SOURCE_DIR) / "../shared/corpus/dapple-profiles";
  if (!fs::exists(folder)) GTEST_SKIP() << "no corpus: " << folder;
  constexpr partition::Wire kWires[] = {{50e-6, 1.25e9}, {20e-6, 12e9}, {10e-6, 150e9}};
  std::size_t tried = 0, shorter = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".txt")) continue;
    const std::string text = read_file(entry.path().string(), 1 << 20).value();
    const std::vector<Layer> layers = layers_of(read_profile(text).value());
    const distribute::DistributedPlan together = fused(step_of(layers), layers);
    for (const partition::Wire& wire : kWires) {
      SCOPED_TRACE(fmt::format("{} at {} GB/s", name, wire.bytes_per_second / 1e9));
      const cost::StepCosts costs = costs_of(layers, wire);
      const Simulated one_call = simulate(together, costs);
      ASSERT_EQ(one_call.released.size(), layers.size());
      const auto cut = search::in_parts(together, bytes_of(together.graph), 4e6);
      ASSERT_TRUE(cut.ok()) << cut.error().message;
      ASSERT_GT(cut->parts, cut->cut);
      const Simulated parts = simulate(cut->plan, costs);
      std::size_t earlier = 0;
      double most_late = 0;
      for (const auto& [label, there] : one_call.released) {
        earlier += parts.released.at(label) < there;
        most_late = std::max(most_late, parts.released.at(label) - there);
      }
      // Many are available earlier; the last ones are later only by the extra calls before them.
      EXPECT_GT(3 * earlier, layers.size());
      EXPECT_LE(most_late, static_cast<double>(cut->parts - cut->cut) * wire.latency + 1e-9);
      double best = parts.seconds;
      for (const double credit : {8e6, 16e6})
        best = std::min(
            best, simulate(search::in_parts(together, bytes_of(together.graph), credit).value().plan, costs)
                      .seconds);
      shorter += best < one_call.seconds;
      ++tried;
    }
  }
  // The step is shorter too where it waits for the link and the latency of a partition is small
  // compared with the updates.
  EXPECT_GE(shorter, 3u);
  EXPECT_GE(tried, 21u);
}

}  // namespace
}  // namespace weft::formats
