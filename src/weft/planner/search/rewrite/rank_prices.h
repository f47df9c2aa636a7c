// weft/planner/search/rewrite/rank_prices.h -- what one node of a distributed plan takes on a rank, by itself.
//
//   contract, sliced(f) on gpu=8      an eighth of its arithmetic, and a launch
//   all-reduce along gpu              what the collective takes alone on its wires
//   slice-across, views               nothing: read where it lies
//
// A pointwise node runs in one pass with its neighbours, so it is charged for its bytes and not for a launch.
// This compares a rewrite with what it replaces; whether the step gets faster only simulating it tells.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/ops/communication.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::search {

class RankPrices {
 public:
  // REQUIRES: all arguments outlive it.
  RankPrices(const plan::Mesh& mesh, const cost::StepCosts& costs, const cluster::Device& device)
      : mesh_(mesh), costs_(costs), device_(device) {}

  // `layouts`: by value of the node's graph.
  double seconds(const plan::NodeView& node, std::span<const plan::Layout> layouts);

 private:
  double bytes_of(const plan::NodeView& node, plan::ValueId value,
                  std::span<const plan::Layout> layouts) const;
  double exchange_seconds(program::Exchange::Kind kind, std::size_t axis, std::int64_t bytes);

  const plan::Mesh& mesh_;
  const cost::StepCosts& costs_;
  const cluster::Device& device_;
  std::map<std::tuple<program::Exchange::Kind, std::size_t, std::int64_t>, double> known_;
};

}  // namespace weft::search
