// weft/plan/hash.h -- a plan's structure as one number.
//
// Two plans with the same outputs, computed by the same operators from the same sources, hash
// alike on every machine and in every run: whatever order their nodes were added in, whatever
// their labels and scopes, and whatever dead nodes they carry.
#pragma once
#include <vector>

#include "weft/base/hash.h"
#include "weft/plan/graph.h"

namespace weft::plan {

// hashes[v]: what value v computes, from the sources up.
std::vector<Digest> value_hashes(const Graph& graph);

// The outputs by name, in order.
Digest structural_hash(const Graph& graph);

}  // namespace weft::plan
