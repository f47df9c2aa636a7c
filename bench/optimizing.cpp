// Time and quality of rewriting: published models on two devices, compared with best-first
// backtracking over whole plans with the same rules and costs, and with a warm plan cache.
//
//   build/release/bench_optimizing [MODEL ..]
//
// Search times are thread times, medians of three. Models are read from ../shared/corpus/models.
// TENSAT's times are published (MLSys 2021), from another machine.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/measure.h"
#include "weft/app/session/read_plan.h"
#include "weft/base/units.h"
#include "weft/formats/model_json.h"
#include "weft/planner/search/rewrite/backtracking.h"
#include "weft/planner/search/rewrite/plan_cache.h"
#include "weft/planner/search/rewrite/rewrite_plan.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/rules/rule/library.h"

namespace {

using namespace weft;

struct Model {
  std::string name;
  double tensat_seconds;  // 0: not published
};

const std::vector<Model> kModels = {
    {"bert_taso_toy", 1.4}, {"bert_base_encoder", 0}, {"bert_large_encoder", 0},
    {"nasrnn", 0.5},        {"resnext50", 0.7},       {"nasnet_a", 10.6},
    {"inception_v3", 5.1},  {"squeezenet11", 0.3},    {"vgg19", 0.4}};

std::string times(double before, double after) { return fmt::format("{:.3f}x", before / after); }

// The search only, without a cache.
double search_seconds(const plan::Graph& graph, std::span<const rule::Rule> rules,
                      const search::Pricing& pricing) {
  std::vector<double> turns;
  for (int i = 0; i < 3; ++i)
    turns.push_back(
        bench::processor_seconds_of([&] { WEFT_CHECK(search::rewrite_plan(graph, rules, pricing).ok()); }));
  return median(turns);
}

void compare(const std::vector<Model>& models, std::span<const rule::Rule> rules,
             const cluster::Device& device) {
  const search::Pricing pricing = search::price_on(device);
  fmt::print("\n{:20} {:>6} {:>9} {:>8} {:>9} {:>9} {:>7} {:>6} {:>14} {:>9} {:>9}\n", device.name, "nodes",
             "search s", "TENSAT s", "before", "after", "gain", "steps", "stopped", "peer s", "peer");
  for (const Model& model : models) {
    const auto graph =
        formats::read_model_json(WEFT_SOURCE_DIR "/../shared/corpus/models/" + model.name + ".json");
    if (!graph.ok()) {
      fmt::print("{:20} {}\n", model.name, graph.error().message);
      continue;
    }
    const search::Rewritten found = search::rewrite_plan(*graph, rules, pricing).value();
    const double seconds = search_seconds(*graph, rules, pricing);
    double peer_after = 0;
    const double peer = bench::processor_seconds_of(
        [&] { peer_after = search::optimize_by_backtracking(*graph, rules, pricing)->seconds_after; });
    fmt::print("{:20} {:6} {:9.3f} {:>8} {:>9} {:>9} {:>7} {:6} {:>14} {:9.2f} {:>9}\n", model.name,
               graph->node_count(), seconds,
               model.tensat_seconds > 0 ? fmt::format("{:.1f}", model.tensat_seconds) : "-",
               print_seconds(found.seconds_before), print_seconds(found.seconds_after),
               times(found.seconds_before, found.seconds_after), found.trail.size(),
               search::name(found.stopped), peer, print_seconds(peer_after));
  }
}

void cache(const std::vector<Model>& models, std::span<const rule::Rule> rules,
           const cluster::Device& device) {
  const search::Pricing pricing = search::price_on(device);
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("weft-bench-plans-{}", getpid())).string();
  fmt::print("\n{:20} {:>10} {:>10} {:>12} {:>12} {:>10} {:>10}\n", "plan cache", "cold ms", "warm ms",
             "priced cold", "priced warm", "regions", "planned");
  for (const Model& model : models) {
    const auto graph =
        formats::read_model_json(WEFT_SOURCE_DIR "/../shared/corpus/models/" + model.name + ".json");
    if (!graph.ok()) continue;
    search::PlanCache plans(folder);
    search::RewriteOptions options;
    options.cache = &plans;
    search::Rewritten cold, warm;
    const double cold_seconds =
        bench::wall_seconds_of([&] { cold = search::rewrite_plan(*graph, rules, pricing, options).value(); });
    const double warm_seconds =
        bench::wall_seconds_of([&] { warm = search::rewrite_plan(*graph, rules, pricing, options).value(); });
    WEFT_CHECK(warm.seconds_after == cold.seconds_after);
    fmt::print("{:20} {:10.1f} {:10.1f} {:12} {:12} {:10} {:10}\n", model.name, cold_seconds * 1e3,
               warm_seconds * 1e3, cold.counts.priced, warm.counts.priced, cold.counts.regions,
               cold.counts.searched);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Model> models = kModels;
  if (argc > 1) {
    models.clear();
    for (int i = 1; i < argc; ++i) models.push_back({argv[i], 0});
  }
  const std::vector<rule::Rule> rules = rule::shipped_rules();
  for (const char* name : {"a100", "h100"}) compare(models, rules, session::find_device(name).value());
  cache(models, rules, session::find_device("a100").value());
  return 0;
}
