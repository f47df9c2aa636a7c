// weft/parallel/distribute/run_node.h -- chooses the operand and result layouts of one node.
//
// On each axis it is one of these, tried in this order:
//
//   update   sliced like the parameter that it updates
//   carry    applied to partial sums, so that gradients are added first and reduced once. Not if
//            other nodes read the partial sums too, if it would make them larger, or if running on
//            unsliced operands would cost extra multiplications
//   around   ring attention, if the distribution requests it: sliced along the queries, with keys
//            and values in the same blocks (spmd/ring.h)
//   cut      sliced along the loop that choose_loops.h chose
//   follow   elementwise, with the slices of its largest operand, or those that its only reader
//            needs
//   whole    replicated
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
  // REQUIRES: all arguments outlive it.
  RunChooser(const plan::Graph& graph, const Signatures& signatures, const LoopChoices& choices,
             const SourceLayouts& sources, const plan::Mesh& mesh, const StageUses& uses,
             const Holdings& holdings);

  // REQUIRES: `holdings` holds the operands.
  NodeRun run(const plan::NodeView& node) const;

  // The layout of a gradient that its update needs; null for all other values.
  const plan::Layout* wanted(plan::ValueId value) const {
    return wanted_[value.value].axes.empty() || !is_gradient_[value.value] ? nullptr : &wanted_[value.value];
  }

 private:
  // What the node does on one axis.
  struct Way {
    const plan::Loop* loop = nullptr;           // slice along it
    plan::Monoid addends = plan::Monoid::none;  // or pass on these partial sums
    bool around = false;                        // or ring attention
  };

  void count_readers();
  void want_back(plan::ValueId value, plan::Layout layout);
  // The layout of an operand on an axis where the node is sliced along the loop.
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
  bool has_masters_ = false;            // an update writes a master weight that its parameter is rounded from
  std::vector<bool> read_before_;       // by value: a node before the update phase reads it
  std::vector<plan::Layout> wanted_;    // by value: layouts that updates want, of gradients and their inputs
  std::vector<bool> is_gradient_;       // by value: an update reads it
};

}  // namespace weft::distribute
