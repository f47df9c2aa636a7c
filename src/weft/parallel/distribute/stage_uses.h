// weft/parallel/distribute/stage_uses.h -- what each node's stage uses the mesh axes for.
//
//   gpu=2: slice h, f, in stage 0 slice b       a node of stage 0: b       all others: h, f
//
// Where stages have no meshes of their own, that is the same for all nodes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// The indices that an axis lists, most wanted first, as the plan's own.
using IndexList = std::vector<Symbol>;

class StageUses {
 public:
  // `stages`: by node, or empty where all stages do the same. Fails on a listed index that no value of the plan has.
  static Result<StageUses> of(const plan::Graph& graph, const Distribution& distribution,
                              std::span<const std::int32_t> stages);

  // Of the nodes of another graph with the same symbols.
  StageUses with(std::span<const std::int32_t> stages) const;

  // Different ones that there are, and which of them is the node's.
  std::size_t count() const { return axes_.size(); }
  std::size_t number(plan::NodeId node) const { return numbers_.empty() ? 0 : numbers_[node.value]; }

  const AxisUse& on(plan::NodeId node, std::size_t axis) const { return axes_[number(node)][axis]; }
  // One for each axis.
  std::span<const IndexList> lists(plan::NodeId node) const { return lists_[number(node)]; }
  // Whether some axis has two indices to choose from, in any stage.
  bool has_choices() const;

 private:
  std::vector<std::vector<AxisUse>> axes_;
  std::vector<std::vector<IndexList>> lists_;
  std::vector<std::size_t> of_stage_;  // by stage; later ones are as the last
  std::vector<std::size_t> numbers_;   // by node; empty: 0
};

}  // namespace weft::distribute
