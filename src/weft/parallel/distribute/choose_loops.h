// weft/parallel/distribute/choose_loops.h -- along which loop each node is cut, mesh axis by mesh axis.
//
//   gpu: slice h, f, s      contract x[b,s,d], w1[d,f] -> [b,s,f]      f: the first of the list that it has
//                           layer-norm x[b,s,d] over d                 s
//                           softmax x[b,h,s,t] over t                  h
//                           reduce gain[d] -> []                       none: it may go with its operand
//
// A loop goes by every name that it has in an operand or a result, so renamed and merged indices follow. One
// loop may be cut on several axes, the outer one first. It is not cut in more parts than it has steps, unless
// an exception says so. One that windows slide along is cut on one axis, and where a block's neighbours hold
// all that its windows see.
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

// What a node does on an axis: the number of a loop of its signature, or one of these.
using LoopChoice = std::int16_t;
constexpr LoopChoice kWhole = -1;     // every rank runs all of it
constexpr LoopChoice kUnlisted = -2;  // the same, but that it may go with an operand or carry addends

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

// The choices of one node, axis by axis, by these lists alone.
std::vector<LoopChoice> loops_of(const plan::NodeView& node, const plan::Signature& signature,
                                 const plan::Mesh& mesh, std::span<const IndexList> lists,
                                 const Exceptions& exceptions);

// Where a view splits or merges an index, whether cutting the loop on the axes marked (of the mesh, outermost
// first) gives blocks of the same elements on both sides.
bool blocks_agree(const plan::NodeView& view, const plan::Loop& loop, const plan::Mesh& mesh,
                  const std::vector<bool>& cut);

}  // namespace weft::distribute
