// weft/parallel/distribute/feedback.h -- error feedback of codecs.
//
//   %3 = state {name="w1.lost.rank", type=f32[rank_addend=4,p=9], layout="sliced(rank_addend) on rank"}
//   %8 = add %7, %3
//   %9 = encode %8 {..}                          these codes are sent
//   %10 = decode %9 {..}
//   %11 = sub %8, %10                            the compression error
//   return .., "next w1.lost.rank"=%11
//
// The sender keeps the compression error and adds it to its next message. Such a state starts at
// zero and stays zero if the codec is lossless: it is not part of what the model computes. It is
// recognized by these nodes, whatever its name.
#pragma once
#include <string_view>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct Feedback {
  std::string_view name;
  plan::NodeId state, add;
  plan::ValueId wanted;  // the value to encode, without the state
};

std::vector<Feedback> find_feedback(const plan::Graph& graph);

}  // namespace weft::distribute
