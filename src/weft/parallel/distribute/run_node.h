// weft/parallel/distribute/run_node.h -- how one node runs on the mesh: what it takes of its operands, what it gives.
//
// On each axis it is one of these, tried in this order:
//
//   update    cut as the parameter that it updates
//   carry     on addends, giving addends: gradients that meet are added first and combined once. Not where
//             others read the addends too, nor where it would make more bytes of them, nor where running on
//             all of them instead of a slice costs products
//   around    attention cut along its queries, of keys that are held in the same blocks (spmd/ring.h), where the
//             distribution says so
//   cut       along the loop that was chosen (choose_loops.h)
//   follow    element by element along the slices that its largest operand is held in, or that its only
//             reader wants
//   whole
#pragma once
#include <optional>
#include <vector>

#include "weft/parallel/distribute/choose_loops.h"
#include "weft/parallel/distribute/holdings.h"
#include "weft/parallel/distribute/signatures.h"
#include "weft/parallel/distribute/source_layouts.h"

namespace weft::distribute {

struct NodeRun {
  std::vector<plan::Layout> operands, results;
};

class RunChooser {
 public:
  // REQUIRES: all outlive it.
  RunChooser(const plan::Graph& graph, const Signatures& signatures, const LoopChoices& choices,
             const SourceLayouts& sources, const plan::Mesh& mesh, const StageUses& uses,
             const Holdings& holdings);

  // REQUIRES: the operands are held.
  NodeRun run(const plan::NodeView& node) const;

  // The layout that the update which reads this gradient wants; null for all other values.
  const plan::Layout* wanted(plan::ValueId value) const {
    return wanted_[value.value].axes.empty() || !is_gradient_[value.value] ? nullptr : &wanted_[value.value];
  }

 private:
  // What the node does on one axis.
  struct Way {
    const plan::Loop* loop = nullptr;           // cut along it
    plan::Monoid addends = plan::Monoid::none;  // or carry these
    bool around = false;                        // or its keys go around
  };

  void count_readers();
  void want_back(plan::ValueId value, plan::Layout layout);
  // What the node needs of an operand on an axis where it is cut along the loop.
  plan::AxisLayout needed_of(const plan::NodeView& node, const plan::Signature& signature,
                             const plan::Loop& loop, std::size_t operand, std::size_t axis) const;
  Way way_on(const plan::NodeView& node, const plan::Signature& signature, std::size_t axis) const;
  const plan::Loop* update_loop(const plan::NodeView& node, const plan::Signature& signature,
                                std::size_t axis) const;
  plan::Monoid carried(const plan::NodeView& node, std::size_t axis) const;
  bool may_go_around(const plan::NodeView& node, const plan::Loop& loop, std::size_t axis) const;
  bool is_widened_gradient(const plan::NodeView& node) const;
  const plan::Loop* followed(const plan::NodeView& node, const plan::Signature& signature,
                             std::size_t axis) const;

  const plan::Graph& graph_;
  const Signatures& signatures_;
  const LoopChoices& choices_;
  const SourceLayouts& sources_;
  const plan::Mesh& mesh_;
  const StageUses& uses_;
  const Holdings& holdings_;
  std::vector<std::uint32_t> readers_;  // by value: nodes that read it, and outputs
  bool has_masters_ = false;            // an update renews a weight that its parameter is rounded from
  std::vector<bool> read_before_;       // by value: a node before the update reads it
  std::vector<plan::Layout> wanted_;    // by value: how updates want gradients, and what only leads to them
  std::vector<bool> is_gradient_;       // by value: an update reads it
};

}  // namespace weft::distribute
