// Time cost of a memory budget: published graphs, long chains and transformers.
//
//   build/release/bench_remat [FILE]
//
// FILE has graphs with "optima": [{"budget", "min_total_time"}]. "ratio" is to the optimum or, if
// that is unknown, to a step that keeps everything. Seconds are per call; processor time.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/corpus.h"
#include "support/measure.h"
#include "weft/base/units.h"
#include "weft/program/memory/recompute.h"
#include "weft/program/memory/recompute_replay.h"

namespace {

using namespace weft;
using bench::processor_seconds;
using memory::RecomputeGraph;

double time_kept(const RecomputeGraph& graph) {
  double time = 0;
  for (const memory::RecomputeNode& node : graph.nodes) time += node.forward + node.backward;
  return time;
}

void row(const RecomputeGraph& graph, std::int64_t budget, double reference, std::string_view to) {
  const double begin = processor_seconds();
  const auto found = memory::recompute(graph, budget);
  const double seconds = processor_seconds() - begin;
  WEFT_CHECK(found.ok());
  if (!found->feasible) {
    fmt::print("{:22} {:>6} {:>12}  needs {}\n", graph.name, graph.nodes.size(), print_exact(budget),
               print_exact(found->least_budget));
    return;
  }
  const auto replayed = memory::replay(graph, found->steps);
  WEFT_CHECK(replayed.ok() && replayed->peak <= budget);
  fmt::print("{:22} {:>6} {:>12} {:>12} {:>14.6g} {:>8.4f} {:10} {:>8.3f}{}\n", graph.name,
             graph.nodes.size(), print_exact(budget), print_exact(found->least_budget), found->time,
             found->time / reference, to, seconds, found->proven ? "  proven" : "");
  std::fflush(stdout);
}

RecomputeGraph chain(std::int32_t nodes) {
  RecomputeGraph graph{fmt::format("chain, {}", nodes), 1, {}};
  for (std::int32_t v = 0; v < nodes; ++v) graph.nodes.push_back({"x", 1, 2, 1, {v - 1}});
  return graph;
}

// The layers of the published gpt3L graph: MFLOP and KiB for 512 tokens of 1,024, four at a time.
RecomputeGraph transformer(std::int32_t layers) {
  RecomputeGraph graph{fmt::format("transformer, {} layers", layers), 4096, {}};
  std::int32_t base = -1;
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    const auto at = static_cast<std::int32_t>(graph.nodes.size());
    graph.nodes.push_back({"ln1qkv", 12885, 25770, 12288, {base}});
    graph.nodes.push_back({"attn", 4295, 8590, 36864, {at}});
    graph.nodes.push_back({"proj_add", 4295, 8590, 4096, {at + 1, base}});
    graph.nodes.push_back({"mlp1", 17180, 34360, 16384, {at + 2}});
    graph.nodes.push_back({"mlp2_add", 17180, 34360, 4096, {at + 3, at + 2}});
    base = at + 4;
  }
  return graph;
}

void published(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    fmt::print("(no published graphs: {} cannot be read)\n", path);
    return;
  }
  for (const auto& given : nlohmann::json::parse(file)) {
    RecomputeGraph graph{given["name"], given["input_size"], {}};
    for (const auto& node : given["nodes"])
      graph.nodes.push_back({node["name"], node["f"], node["b"], node["a"], node["inputs"]});
    for (const auto& optimum : given["optima"])
      row(graph, optimum["budget"], optimum["min_total_time"], "optimum");
  }
}

}  // namespace

int main(int argc, char** argv) {
  fmt::print("{:22} {:>6} {:>12} {:>12} {:>14} {:>8} {:10} {:>8}\n", "graph", "nodes", "budget", "least",
             "time", "ratio", "to", "s");
  published(argc > 1 ? argv[1] : bench::corpus("remat-optimal/graphs.json").string());
  for (const RecomputeGraph& graph : {chain(96), transformer(24), transformer(96)}) {
    const std::int64_t least = memory::recompute(graph, 0)->least_budget;
    for (const std::int64_t times : {1, 2, 4, 8, 16, 32})
      row(graph, times * least, time_kept(graph), "all kept");
  }
  return 0;
}
