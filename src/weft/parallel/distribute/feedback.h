// weft/parallel/distribute/feedback.h -- what a codec loses, kept on the rank that encodes and added to what it encodes next.
//
//   %3 = state {name="w1.lost.rank", type=f32[rank_addend=4,p=9], layout="sliced(rank_addend) on rank"}
//   %8 = add %7, %3
//   %9 = encode %8 {..}                          these codes are sent
//   %10 = decode %9 {..}
//   %11 = sub %8, %10                            what they lack
//   return .., "next w1.lost.rank"=%11
//
// Such a state begins at zero, and stays zero where codecs lose nothing: it is no part of what the model means. It is
// known by these nodes, whatever its name.
#pragma once
#include <string_view>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct Feedback {
  std::string_view name;
  plan::NodeId state, add;
  plan::ValueId wanted;  // what is encoded but for the state
};

std::vector<Feedback> find_feedback(const plan::Graph& graph);

}  // namespace weft::distribute
