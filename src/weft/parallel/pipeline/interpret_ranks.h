// weft/parallel/pipeline/interpret_ranks.h -- reference interpreter for the plans of all ranks.
//
// Every rank runs its plan from the first node to the last. At a collective it waits for its group,
// at a receive for the message; a send never waits. So misordered passes, missing sends and
// unmatched sends are detected, with the rank and the node.
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

// Fails if a collective is a halo or has an empty shard: these cannot be interpreted rank by rank.
Status check_interpretable(std::span<const plan::Graph* const> ranks);

// The outputs of each rank's plan, in order. Fails if a source is missing, a value exceeds
// `max_elements`, ranks deadlock, or a message is not received.
template <class T>
Result<std::vector<std::vector<ops::Tensor<T>>>> interpret_ranks(std::span<const plan::Graph* const> ranks,
                                                                 const plan::Mesh& mesh,
                                                                 const RankSources<T>& sources,
                                                                 const ops::Numbers<T>& numbers,
                                                                 std::int64_t max_elements);

}  // namespace weft::pipeline
