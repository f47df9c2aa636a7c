#include "weft/parallel/distribute/proof_meshes.h"

#include <algorithm>

#include "weft/plan/ops/communication.h"

namespace weft::distribute {
namespace {

constexpr std::int32_t kShort = 2, kLong = 3;  // ranks per axis
constexpr std::int32_t kMostNumbered = 8;      // ranks of an axis that a plan refers to by number

// By axis: how many ranks the plan's rank numbers need to mean the same as on its own mesh.
std::vector<std::int32_t> numbered_ranks(const DistributedPlan& plan) {
  std::vector<std::int32_t> ranks(plan.mesh.axes.size(), 1);
  std::vector<std::int64_t> shifted(ranks.size());  // by all permutations together, as they may be chained
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(plan::NodeId(n));
    const ops::Communication* op = ops::find_communication(node.op());
    if (op == nullptr) continue;
    const auto axis = static_cast<std::size_t>(plan.mesh.find(op->axis(node)));
    const ops::Exchange exchange = op->exchange(node);
    if (exchange.take == ops::Exchange::Take::root)
      ranks[axis] = std::max(ranks[axis], static_cast<std::int32_t>(exchange.rank + 1));
    if (exchange.take == ops::Exchange::Take::shifted)
      shifted[axis] += std::abs(shortest_shift(exchange.rank, plan.mesh.axes[axis].ranks));
  }
  for (std::size_t axis = 0; axis < ranks.size(); ++axis)
    if (shifted[axis] > 0)
      ranks[axis] = static_cast<std::int32_t>(
          std::max<std::int64_t>(ranks[axis], std::min<std::int64_t>(kMostNumbered, 2 * shifted[axis] + 1)));
  return ranks;
}

}  // namespace

std::int64_t shortest_shift(std::int64_t by, std::int32_t ranks) {
  const std::int64_t up = ((by % ranks) + ranks) % ranks;
  return 2 * up > ranks ? up - ranks : up;
}

std::vector<plan::Mesh> proof_meshes(const DistributedPlan& plan) {
  const std::vector<std::int32_t> fewest = numbered_ranks(plan);
  std::vector<plan::Mesh> meshes;
  for (const bool first_is_short : {true, false}) {
    plan::Mesh mesh = plan.mesh;
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
      const bool is_short = (axis % 2 == 0) == first_is_short;
      mesh.axes[axis].ranks =
          std::min(mesh.axes[axis].ranks, std::max(fewest[axis], is_short ? kShort : kLong));
    }
    if (meshes.empty() || mesh != meshes.front()) meshes.push_back(std::move(mesh));
  }
  return meshes;
}

}  // namespace weft::distribute
