// weft/planner/search/rewrite/rank_costs.h -- cost of a single node of a distributed plan on a rank.
//
//   contract, sliced(f) on gpu=8      an eighth of its arithmetic, and a launch
//   all-reduce along gpu              the collective alone on its links
//   slice-across, views               nothing: no copy
//
// A pointwise node is fused with its neighbours, so it costs its bytes but no launch. These costs
// compare a rewrite with what it replaces. Only simulation shows whether the step gets faster.
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

class RankCosts {
 public:
  // REQUIRES: all arguments outlive it.
  RankCosts(const plan::Mesh& mesh, const cost::StepCosts& costs, const cluster::Device& device)
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
