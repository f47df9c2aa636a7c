// weft/parallel/pipeline/interpret_ranks.h -- runs the plans of all ranks by the reference semantics, each its own.
//
// Every rank goes through its plan from the first node to the last. At a collective it waits for its group, at a
// receive for the message; a send waits for nobody. So a plan that orders passes wrongly, waits for what nobody
// sends or sends what nobody takes is found out, with the rank and the node.
#pragma once
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/ops/evaluation.h"

namespace weft::pipeline {

template <class T>
using RankSources = std::function<const ops::Tensor<T>*(std::int32_t rank, std::string_view name)>;

// Fails where a collective is a halo or finds an empty share: these are not interpreted rank by rank.
Status check_interpretable(std::span<const plan::Graph* const> ranks);

// The outputs of each rank's plan, in order. Fails where a source is missing, a value would have more than
// `most_elements`, ranks wait for each other, or a message is not taken.
template <class T>
Result<std::vector<std::vector<ops::Tensor<T>>>> interpret_ranks(std::span<const plan::Graph* const> ranks,
                                                                 const plan::Mesh& mesh,
                                                                 const RankSources<T>& sources,
                                                                 const ops::Numbers<T>& numbers,
                                                                 std::int64_t most_elements);

}  // namespace weft::pipeline
