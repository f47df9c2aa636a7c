#include "weft/planner/search/bucket/partition_all_reduces.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/parallel/distribute/edit_plan.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/search/bucket/fastest_plan.h"
#include "weft/planner/search/distribution/rank_exchanges.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::NodeView;

constexpr double kTriedCredits[] = {16.0 * (1 << 20), 4.0 * (1 << 20), 1 << 20, 256 << 10};

// Parts that end at tensor boundaries are up to a quarter larger than even ones
// (program/tasks/partition_exchanges.h).
std::int64_t parts_within(double bytes, double credit) {
  constexpr double kLargest = 1.25;
  if (bytes <= credit) return 1;
  return static_cast<std::int64_t>(
      std::min(std::ceil(kLargest * bytes / credit), static_cast<double>(ops::kMostParts)));
}

// Bytes moved by each exchange of rank 0, by node of the plan of the mesh.
Result<std::vector<std::int64_t>> bytes_by_node(const PredictedPlan& plan) {
  std::vector<std::int64_t> bytes(plan.plan.graph.node_count());
  WEFT_TRY(first, exchanges_of_first_rank(plan));
  for (const RankExchange& one : first.exchanges) {
    const program::Task& task = first.ranks->program->tasks[one.task];
    bytes[one.node.value] +=
        cost::message_bytes(std::get<program::Exchange>(first.ranks->program->units[task.unit].kernel));
  }
  return bytes;
}

}  // namespace

Result<InParts> in_parts(const distribute::DistributedPlan& plan, std::span<const std::int64_t> bytes,
                         double credit) {
  InParts made;
  distribute::PlanEdit edit(plan);
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const NodeView node = plan.graph.view(NodeId(n));
    const std::int64_t parts = parts_within(static_cast<double>(bytes[n]), credit);
    if (&node.op() != &ops::all_reduce() || parts < 2 || ops::steps_between_sums(node) > 1) {
      WEFT_TRY_STATUS(edit.keep(node.id()));
      continue;
    }
    edit.adopt_context(node.id());
    std::vector<plan::ValueId> inputs;
    for (const plan::ValueId input : node.node().inputs) inputs.push_back(edit.now(input));
    ops::AllReduceOptions how = ops::all_reduce_options(node);
    how.parts = parts;
    WEFT_TRY(cut, ops::add_all_reduce(edit.graph(), inputs, how));
    for (std::size_t k = 0; k < node.result_count(); ++k)
      edit.become(node.result(k), edit.graph().result(cut, k));
    ++made.cut;
    made.parts += static_cast<std::size_t>(parts);
  }
  WEFT_TRY(edited, edit.finish());
  made.plan = std::move(edited);
  return made;
}

Result<PartitionedAllReduces> partition_all_reduces(const PredictedPlan& before, const Machine& machine,
                                                    const WindowOptions& options) {
  PartitionedAllReduces result;
  result.said = "no all-reduce is longer than the window";
  if (before.plan.time) return result;
  WEFT_TRY(bytes, bytes_by_node(before));
  WEFT_TRY(costs, machine.costs(before.plan.mesh));
  const bool is_asked_for = options.credit > 0;
  const std::span<const double> credits =
      is_asked_for ? std::span(&options.credit, 1) : std::span(kTriedCredits);
  FastestPlan ways(before, machine, costs, {options.least_gain, options.memory_bytes, is_asked_for});
  std::size_t tried = 0;  // parts of the last one tried
  for (const double credit : credits) {
    WEFT_TRY(cut, in_parts(before.plan, bytes, credit));
    if (cut.cut == 0 || cut.parts == tried) continue;
    tried = cut.parts;
    WEFT_TRY(is_taken, ways.offer(std::move(cut.plan)));
    if (!is_taken) continue;
    result.said = fmt::format("{} all-reduce{} in {} parts of at most {}", cut.cut, cut.cut == 1 ? "" : "s",
                              cut.parts, print_bytes(credit));
    result.credit = credit;
  }
  if (tried == 0 && is_asked_for)
    result.said =
        fmt::format("{} bounds nothing: no all-reduce has more than {}", print_bytes(options.credit),
                    print_bytes(static_cast<double>(*std::ranges::max_element(bytes))));
  if (!ways.best && !ways.why_not.empty()) result.said = ways.why_not;
  result.plan = std::move(ways.best);
  return result;
}

}  // namespace weft::search
