// weft/parallel/distribute/stage_uses.h -- how the stage of each node uses the mesh axes.
//
//   gpu=2: slice h, f, in stage 0 slice b       a node of stage 0: b       all others: h, f
//
// Unless stages have different meshes, all nodes have the same use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// The indices that an axis lists, in order of preference, as symbols of the plan.
using IndexList = std::vector<Symbol>;

class StageUses {
 public:
  // `stages`: by node, or empty if all stages are alike. Fails on a listed index that no value of
  // the plan has.
  static Result<StageUses> of(const plan::Graph& graph, const Distribution& distribution,
                              std::span<const std::int32_t> stages);

  // For the nodes of another graph with the same symbols.
  StageUses with(std::span<const std::int32_t> stages) const;

  // The number of distinct uses, and which of them applies to the node.
  std::size_t count() const { return axes_.size(); }
  std::size_t number(plan::NodeId node) const { return numbers_.empty() ? 0 : numbers_[node.value]; }

  const AxisUse& on(plan::NodeId node, std::size_t axis) const { return axes_[number(node)][axis]; }
  // One per axis.
  std::span<const IndexList> lists(plan::NodeId node) const { return lists_[number(node)]; }
  // Whether some axis lists at least two indices, in any stage.
  bool has_choices() const;

 private:
  std::vector<std::vector<AxisUse>> axes_;
  std::vector<std::vector<IndexList>> lists_;
  std::vector<std::size_t> of_stage_;  // by stage; later stages use the last entry
  std::vector<std::size_t> numbers_;   // by node; empty: 0
};

}  // namespace weft::distribute
