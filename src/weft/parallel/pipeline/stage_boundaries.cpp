#include "weft/parallel/pipeline/stage_boundaries.h"

#include "weft/base/check.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/roles.h"
#include "weft/plan/ops/operators.h"

namespace weft::pipeline {

using plan::NodeId;
using plan::NodeView;

Result<std::vector<BoundaryValue>> boundary_values(const distribute::DistributedPlan& plan) {
  WEFT_CHECK(plan.time.has_value());
  WEFT_TRY(schedule, schedule_of(plan.time->distribution));
  std::vector<BoundaryValue> found;
  if (schedule.stages == 1) return found;
  WEFT_TRY(roles, roles_of(plan));
  WEFT_TRY(batch, batch_index(plan.graph));
  const std::vector<std::int32_t>& places = plan.time->position;
  std::vector<std::vector<NodeId>> readers(plan.graph.value_count());
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    if (roles.role[n] != Role::micro) continue;
    for (const plan::ValueId input : plan.graph.node(NodeId(n)).inputs) {
      const std::size_t maker = plan.graph.value(input).producer.value;
      if (roles.role[maker] != Role::micro || ops::is_source(*plan.graph.node(NodeId(maker)).op) ||
          !plan.graph.type(input).has(batch))
        continue;
      bool crosses = false;
      for (std::int32_t k = 0; k < schedule.micro_batches && places[n] != places[maker]; ++k)
        crosses = crosses || schedule.stage_at(places[n], k) != schedule.stage_at(places[maker], k);
      if (crosses && (readers[input.value].empty() || readers[input.value].back() != NodeId(n)))
        readers[input.value].push_back(NodeId(n));
    }
  }
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const NodeView node = plan.graph.view(NodeId(n));
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (std::vector<NodeId>& of = readers[node.result(k).value]; !of.empty())
        found.push_back({node.result(k), std::move(of)});
  }
  return found;
}

}  // namespace weft::pipeline
