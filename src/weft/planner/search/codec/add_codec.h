// weft/planner/search/codec/add_codec.h -- encode and decode as nodes of a graph.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/codec.h"

namespace weft::search {

// The indices `keep` stay; the others are rows of codes, in segments of so many steps of their first.
Result<plan::ValueId> add_encode(plan::Graph& graph, plan::ValueId x, std::vector<Symbol> keep,
                                 std::int64_t segment, const ops::Codec& codec);
// Numbers with the indices of `like`.
Result<plan::ValueId> add_decode(plan::Graph& graph, plan::ValueId codes, const plan::Type& like,
                                 plan::DType dtype, std::int64_t segment, const ops::Codec& codec);

// A name that the value has no index of.
Symbol fresh_index(plan::Graph& graph, plan::ValueId value, std::string name);

}  // namespace weft::search
