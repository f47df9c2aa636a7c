#include "weft/planner/search/bucket/bucket_exchanges.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/parallel/partition/buckets.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/search/bucket/fastest_plan.h"
#include "weft/planner/search/bucket/gradient_sums.h"
#include "weft/planner/search/bucket/merge_exchanges.h"
#include "weft/planner/search/distribution/rank_exchanges.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// An all-reduce on rank 0 that only the update waits for.
struct SummedGradient {
  NodeId node;
  std::int64_t bytes = 0;
  double ready = 0;  // seconds into the step
};

// All-reduces that can be merged: along one axis, with one monoid and dtype, and independent.
struct SumKind {
  std::size_t axis = 0;
  std::string_view monoid;
  plan::DType dtype = plan::DType::f32;
  std::int32_t after = 0;  // how many others of its kind it depends on

  friend auto operator<=>(const SumKind&, const SumKind&) = default;
};
using SummedGradients = std::map<SumKind, std::vector<SummedGradient>>;

bool is_single_all_reduce(const plan::Node& node) {
  return node.op == &ops::all_reduce() && node.inputs.size() == 1;
}

// When the operands of each exchange of rank 0 are ready, by node of the plan of the mesh.
Result<std::map<std::size_t, SummedGradient>> ready_exchanges(const PredictedPlan& before) {
  std::map<std::size_t, SummedGradient> found;
  WEFT_TRY(first, exchanges_of_first_rank(before));
  for (const RankExchange& one : first.exchanges) {
    const program::Task& task = first.ranks->program->tasks[one.task];
    const auto& exchange = std::get<program::Exchange>(first.ranks->program->units[task.unit].kernel);
    SummedGradient gradient{one.node, cost::message_bytes(exchange), 0};
    for (const std::uint32_t wait : task.waits)
      gradient.ready = std::max(gradient.ready, first.ranks->timeline.tasks[wait].end);
    found[one.node.value] = gradient;
  }
  return found;
}

Result<SummedGradients> find_gradients(const PredictedPlan& before) {
  const plan::Graph& graph = before.plan.graph;
  const std::vector<bool> is_gradient = gradient_sums(graph);
  WEFT_TRY(ready, ready_exchanges(before));
  SummedGradients gradients;
  // By value: the most sums of each kind that it depends on.
  using Behind = std::map<SumKind, std::int32_t>;
  std::vector<Behind> behind(graph.value_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    Behind here;
    for (const ValueId input : node.node().inputs)
      for (const auto& [kind, count] : behind[input.value]) here[kind] = std::max(here[kind], count);
    const auto known = ready.find(n);
    if (is_gradient[n] && is_single_all_reduce(node.node()) && known != ready.end() &&
        known->second.bytes > 0) {
      const ops::Communication& op = *ops::find_communication(node.op());
      const int axis = before.plan.mesh.find(op.axis(node));
      SumKind kind{static_cast<std::size_t>(axis), plan::name(op.exchange(node).monoid),
                   node.input_type(0).dtype, 0};
      std::int32_t& count = here[kind];
      kind.after = count++;
      gradients[kind].push_back(known->second);
    }
    for (std::size_t k = 0; k < node.result_count() && !here.empty(); ++k)
      behind[node.result(k).value] = here;
  }
  for (auto& [kind, list] : gradients) std::ranges::stable_sort(list, {}, &SummedGradient::ready);
  return gradients;
}

std::vector<partition::Tensor> chain_of(std::span<const SummedGradient> gradients) {
  std::vector<partition::Tensor> chain;
  double made = 0;
  for (const SummedGradient& gradient : gradients) {
    chain.push_back({.bytes = static_cast<double>(gradient.bytes), .made_seconds = gradient.ready - made});
    made = gradient.ready;
  }
  return chain;
}

// A linear cost through the smallest message and the sum of all messages.
partition::Wire wire_for(std::span<const SummedGradient> gradients, std::size_t axis, const plan::Mesh& mesh,
                         const cost::StepCosts& costs) {
  std::int64_t least = gradients.front().bytes, all = 0;
  for (const SummedGradient& gradient : gradients)
    least = std::min(least, gradient.bytes), all += gradient.bytes;
  program::Exchange exchange;
  exchange.axis = mesh.axes[axis].name;
  const double small = costs.exchange(exchange, axis, least).seconds(),
               large = costs.exchange(exchange, axis, all).seconds();
  const double rate = large > small ? static_cast<double>(all - least) / (large - small) : 1e18;
  return {.latency = std::max(small - static_cast<double>(least) / rate, 0.0), .bytes_per_second = rate};
}

using NodeBuckets = std::vector<std::vector<NodeId>>;

void add_buckets(NodeBuckets& buckets, std::span<const SummedGradient> gradients,
                 std::span<const std::int32_t> ends) {
  std::size_t begin = 0;
  for (const std::int32_t end : ends) {
    std::vector<NodeId> bucket;
    for (; begin < static_cast<std::size_t>(end); ++begin) bucket.push_back(gradients[begin].node);
    for (std::size_t from = 0; from < bucket.size(); from += ops::Communication::kMostMembers) {
      const std::size_t to = std::min(bucket.size(), from + ops::Communication::kMostMembers);
      buckets.emplace_back(bucket.begin() + static_cast<std::ptrdiff_t>(from),
                           bucket.begin() + static_cast<std::ptrdiff_t>(to));
    }
  }
}

// Whether other exchanges use the axis of a gradient.
bool has_company(const plan::Graph& graph, const plan::Mesh& mesh, const SummedGradients& gradients) {
  std::vector<bool> is_gradient(graph.node_count());
  std::vector<bool> is_used(mesh.axes.size());
  for (const auto& [kind, list] : gradients)
    for (const SummedGradient& gradient : list) is_gradient[gradient.node.value] = is_used[kind.axis] = true;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    const ops::Communication* const op = ops::find_communication(node.op());
    if (op != nullptr && !is_gradient[n] && ops::collective_of(op->exchange(node)) &&
        is_used[static_cast<std::size_t>(mesh.find(op->axis(node)))])
      return true;
  }
  return false;
}

// A candidate: buckets and their priority.
struct BucketCandidate {
  const NodeBuckets* buckets;
  bool low;
};

}  // namespace

Result<Bucketed> bucket_exchanges(const PredictedPlan& before, const Machine& machine,
                                  const BucketOptions& options) {
  Bucketed result;
  result.said = "no small exchanges are ready at about the same time";
  WEFT_TRY(gradients, find_gradients(before));
  if (gradients.empty()) return result;
  WEFT_TRY(costs, machine.costs(before.plan.mesh));
  const bool is_asked_for = options.fixed_bytes > 0;
  const double fixed_bytes = is_asked_for ? options.fixed_bytes : partition::kUsualBucketBytes;
  NodeBuckets chosen, fixed;
  std::size_t sums = 0;
  for (const auto& [kind, list] : gradients) {
    sums += list.size();
    const std::vector<partition::Tensor> chain = chain_of(list);
    const partition::Wire wire = wire_for(list, kind.axis, before.plan.mesh, costs);
    add_buckets(chosen, list, partition::bucketise(chain, wire).ends);
    add_buckets(fixed, list, partition::fixed_buckets(chain, fixed_bytes));
  }
  std::vector<BucketCandidate> ways;
  if (!is_asked_for && chosen != fixed) ways.push_back({&chosen, false});
  ways.push_back({&fixed, false});
  if (has_company(before.plan.graph, before.plan.mesh, gradients))
    for (std::size_t w = ways.size(); w-- > 0;) ways.push_back({ways[w].buckets, true});
  FastestPlan quickest(before, machine, costs, {options.least_gain, options.memory_bytes, is_asked_for});
  for (const BucketCandidate& way : ways) {
    if (!way.low && way.buckets->size() == sums) continue;  // no buckets: the current plan
    Result<distribute::DistributedPlan> merged = merge_exchanges(before.plan, *way.buckets, way.low);
    if (!merged.ok()) continue;
    WEFT_TRY(is_taken, quickest.offer(std::move(*merged)));
    if (!is_taken) continue;
    result.said = fmt::format("{} all-reduces in {} calls", sums, way.buckets->size());
    if (way.buckets == &fixed) result.said += fmt::format(", in buckets of {}", print_bytes(fixed_bytes));
    if (way.low) result.said += ", at low priority";
  }
  if (!quickest.best && !quickest.why_not.empty()) result.said = quickest.why_not;
  result.plan = std::move(quickest.best);
  return result;
}

}  // namespace weft::search
