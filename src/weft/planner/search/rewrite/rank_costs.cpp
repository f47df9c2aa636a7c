#include "weft/planner/search/rewrite/rank_costs.h"

#include <algorithm>

#include "weft/plan/ops/pointwise.h"
#include "weft/predict/cost/plan_cost.h"

namespace weft::search {

using Collective = program::Exchange::Kind;

double RankCosts::bytes_of(const plan::NodeView& node, plan::ValueId value,
                           std::span<const plan::Layout> layouts) const {
  auto bytes = static_cast<double>(node.graph().type(value).bytes());
  for (std::size_t axis = 0; axis < mesh_.axes.size(); ++axis)
    if (layouts[value.value].axes[axis].is_sliced()) bytes /= mesh_.axes[axis].ranks;
  return bytes;
}

// Cached, since layers repeat the same exchanges.
double RankCosts::exchange_seconds(Collective kind, std::size_t axis, std::int64_t bytes) {
  const auto [at, is_new] = known_.try_emplace({kind, axis, bytes});
  if (is_new) {
    program::Exchange exchange;
    exchange.kind = kind;
    exchange.axis = mesh_.axes[axis].name;
    at->second = costs_.exchange(exchange, axis, bytes).seconds();
  }
  return at->second;
}

double RankCosts::seconds(const plan::NodeView& node, std::span<const plan::Layout> layouts) {
  if (const ops::Communication* communication = ops::find_communication(node.op())) {
    const std::optional<Collective> kind = ops::collective_of(communication->exchange(node));
    const int axis = mesh_.find(communication->axis(node));
    if (!kind || axis < 0) return 0;
    double bytes = 0;
    for (std::size_t k = 0; k < node.input_count(); ++k)
      bytes += bytes_of(node, *kind == Collective::all_gather ? node.result(k) : node.input(k), layouts);
    return exchange_seconds(*kind, static_cast<std::size_t>(axis), static_cast<std::int64_t>(bytes));
  }
  const double alone = cost::node_seconds(node, device_);
  if (!(alone > 0)) return 0;
  double parts = 1;
  for (std::size_t axis = 0; axis < mesh_.axes.size(); ++axis) {
    bool is_cut = false;
    for (const plan::ValueId input : node.node().inputs)
      is_cut |= layouts[input.value].axes[axis].is_sliced();
    for (std::size_t k = 0; k < node.result_count(); ++k)
      is_cut |= layouts[node.result(k).value].axes[axis].is_sliced();
    if (is_cut) parts *= mesh_.axes[axis].ranks;
  }
  const double launch = std::min(device_.launch_seconds, alone);
  return (alone - launch) / parts + (ops::is_pointwise(node.op()) ? 0 : launch);
}

}  // namespace weft::search
