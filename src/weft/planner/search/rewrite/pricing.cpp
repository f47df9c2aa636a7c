#include "weft/planner/search/rewrite/pricing.h"

#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/plan_cost.h"

namespace weft::search {
namespace {

// Increment when cost/plan_cost.h changes: it invalidates earlier costs.
constexpr std::uint64_t kCostVersion = 1;

}  // namespace

Pricing price_on(const cluster::Device& device) {
  Hasher hasher;
  hasher.text("roofline").number(kCostVersion);
  for (const double rate : device.flops_per_second) hasher.real(rate);
  for (const double rate : device.kernels) hasher.real(rate);
  hasher.real(device.memory_bytes_per_second).real(device.launch_seconds).real(device.reach);
  return {[device](const plan::NodeView& node) { return cost::node_seconds(node, device); }, hasher.digest()};
}

bool is_seen_through(const plan::Operator& op) {
  return op.is_view() || &op == &ops::transpose() || &op == &ops::slice() || &op == &ops::broadcast();
}

}  // namespace weft::search
