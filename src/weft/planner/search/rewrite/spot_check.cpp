#include "weft/planner/search/rewrite/spot_check.h"

#include <map>
#include <optional>
#include <string>

#include "weft/base/random.h"
#include "weft/parallel/distribute/shrink.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/plan_cost.h"

namespace weft::search {
namespace {

using Tensors = std::map<std::string, ops::Tensor<ops::Field>, std::less<>>;

constexpr std::uint64_t kSeed = 0x5107;
constexpr double kMostFlops = 1e5;  // per plan: about a millisecond in the reference interpreter
constexpr std::int64_t kMostElementsOfAValue = 1 << 16;
constexpr distribute::SmallSizes kSmall = {.kept = 4, .rows = 8, .columns = 9};

Tensors random_sources(const plan::Graph& graph, Random& random) {
  Tensors sources;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (!ops::is_source(node.op())) continue;
    ops::Tensor<ops::Field>& tensor = sources[std::string(node.word(0))];
    for (const plan::Dim& dim : node.result_type(0).dims) tensor.sizes.push_back(dim.size);
    for (std::int64_t k = 0; k < node.result_type(0).elements(); ++k) tensor.data.emplace_back(random.next());
  }
  return sources;
}

bool is_cheap(const plan::Graph& graph) {
  for (std::size_t v = 0; v < graph.value_count(); ++v)
    if (graph.type(plan::ValueId(v)).elements() > kMostElementsOfAValue) return false;
  return cost::plan_flops(graph) <= kMostFlops;
}

SpotCheck compare(const plan::Graph& plan, const plan::Graph& region) {
  if (!is_cheap(plan) || !is_cheap(region)) return SpotCheck::not_run;
  Random random(kSeed);
  const Tensors sources = random_sources(region, random);
  ops::Numbers<ops::Field> numbers;
  numbers.key = random.next();
  const auto run = [&](const plan::Graph& graph) {
    return ops::interpret<ops::Field>(
        graph,
        [&](std::string_view name) {
          const auto found = sources.find(name);
          return found != sources.end() ? &found->second : nullptr;
        },
        numbers);
  };
  const auto ours = run(plan), theirs = run(region);
  if (!ours.ok() || !theirs.ok()) return SpotCheck::not_run;
  if (ours->size() != theirs->size()) return SpotCheck::differ;
  for (std::size_t y = 0; y < ours->size(); ++y)
    if ((*ours)[y].sizes != (*theirs)[y].sizes || (*ours)[y].data != (*theirs)[y].data)
      return SpotCheck::differ;
  return SpotCheck::agree;
}

}  // namespace

SpotCheck spot_check(const plan::Graph& plan, const plan::Graph& region) {
  if (const SpotCheck as_they_are = compare(plan, region); as_they_are != SpotCheck::not_run)
    return as_they_are;
  const auto small_plan = distribute::shrink(plan, kSmall), small_region = distribute::shrink(region, kSmall);
  if (!small_plan.ok() || !small_region.ok()) return SpotCheck::not_run;
  return compare(*small_plan, *small_region);
}

}  // namespace weft::search
