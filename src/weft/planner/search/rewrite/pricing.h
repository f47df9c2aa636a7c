// weft/planner/search/rewrite/pricing.h -- what a search asks the cost model: how long one node takes.
//
//   Pricing pricing = price_on(h100);
//   pricing.seconds(graph.view(node))        1.2e-05
//
// A price depends on the node and on the views that its operands are seen through, as cost/plan_cost.h
// says. The digest stands for everything else: two pricings with one digest give the same prices.
#pragma once
#include <functional>

#include "weft/base/hash.h"
#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"

namespace weft::search {

struct Pricing {
  std::function<double(const plan::NodeView&)> seconds;
  Digest digest;
  bool learns = false;  // a training plan: what is computed from parameters alone runs in every step
};

// At best, on one device: cost/plan_cost.h.
Pricing price_on(const cluster::Device& device);

// Whether the price of a reader may depend on what made the operand of such a node: rename, slice, ..
bool is_seen_through(const plan::Operator& op);

}  // namespace weft::search
