// weft/planner/search/codec/add_codec.h -- add encode and decode nodes to a graph.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/codec.h"

namespace weft::search {

// Keeps the indices `keep` and encodes the others as rows. Each segment covers `segment` positions
// of their first index.
Result<plan::ValueId> add_encode(plan::Graph& graph, plan::ValueId x, std::vector<Symbol> keep,
                                 std::int64_t segment, const ops::Codec& codec);
// Decodes to the indices of `like`.
Result<plan::ValueId> add_decode(plan::Graph& graph, plan::ValueId codes, const plan::Type& like,
                                 plan::DType dtype, std::int64_t segment, const ops::Codec& codec);

// A name that no index of the value has.
Symbol fresh_index(plan::Graph& graph, plan::ValueId value, std::string name);

}  // namespace weft::search
