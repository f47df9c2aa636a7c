// weft/planner/search/rewrite/pricing.h -- cost model for rewriting: the time of one node.
//
//   Pricing pricing = price_on(h100);
//   pricing.seconds(graph.view(node))        1.2e-05
//
// A cost depends on the node and on the views through which it reads its operands
// (cost/plan_cost.h). The digest covers everything else: two pricings with the same digest give the
// same costs.
#pragma once
#include <functional>

#include "weft/base/hash.h"
#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"

namespace weft::search {

struct Pricing {
  std::function<double(const plan::NodeView&)> seconds;
  Digest digest;
  bool learns = false;  // a training plan: values computed only from parameters change every step
};

// Roofline cost on one device: cost/plan_cost.h.
Pricing price_on(const cluster::Device& device);

// Whether the cost of a reader may depend on the operand of such a node: rename, slice, ..
bool is_seen_through(const plan::Operator& op);

}  // namespace weft::search
