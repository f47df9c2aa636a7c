// weft/parallel/distribute/choose_loops.h -- chooses the loop along which a node is sliced.
//
//   gpu: slice h, f, s      contract x[b,s,d], w1[d,f] -> [b,s,f]      f: the first listed index
//                           layer-norm x[b,s,d] over d                 s
//                           softmax x[b,h,s,t] over t                  h
//                           reduce gain[d] -> []                       none: it may follow its operand
//
// A loop goes by every name that it has in an operand or a result, so renamed and merged indices
// match too. One loop may be sliced on several axes, the outer one first. It is not sliced into
// more blocks than it has iterations, unless an exception says so. A loop that windows slide along
// is sliced on one axis only, and only if the neighbouring blocks hold all that a block's windows
// read.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/exceptions.h"
#include "weft/parallel/distribute/signatures.h"
#include "weft/parallel/distribute/stage_uses.h"

namespace weft::distribute {

// What a node does on an axis: the number of a loop of its signature, or one of these constants.
using LoopChoice = std::int16_t;
constexpr LoopChoice kWhole = -1;     // every rank runs the whole node
constexpr LoopChoice kUnlisted = -2;  // likewise, but it may follow an operand or pass on partial sums

class LoopChoices {
 public:
  LoopChoices(std::size_t nodes, std::size_t axes) : axes_(axes), choices_(nodes * axes, kUnlisted) {}

  LoopChoice at(plan::NodeId node, std::size_t axis) const { return choices_[node.value * axes_ + axis]; }
  void set(plan::NodeId node, std::size_t axis, LoopChoice choice) {
    choices_[node.value * axes_ + axis] = choice;
  }

 private:
  std::size_t axes_;
  std::vector<LoopChoice> choices_;
};

LoopChoices choose_loops(const plan::Graph& graph, const Signatures& signatures, const plan::Mesh& mesh,
                         const StageUses& uses, const Exceptions& exceptions);

// The choices of one node per axis, from these lists and exceptions only.
std::vector<LoopChoice> loops_of(const plan::NodeView& node, const plan::Signature& signature,
                                 const plan::Mesh& mesh, std::span<const IndexList> lists,
                                 const Exceptions& exceptions);

// For a view that splits or merges an index: whether slicing the loop on the marked mesh axes
// (outermost first) gives blocks of the same elements on both sides.
bool blocks_agree(const plan::NodeView& view, const plan::Loop& loop, const plan::Mesh& mesh,
                  const std::vector<bool>& cut);

}  // namespace weft::distribute
