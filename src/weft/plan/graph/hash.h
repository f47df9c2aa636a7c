// weft/plan/graph/hash.h -- a plan's structure as one number.
//
// Two plans with the same outputs, computed by the same operators from the same sources, hash
// alike on every machine and in every run: whatever order their nodes were added in, whatever
// their labels, scopes and phases, and whatever dead nodes they carry. It says what is computed, not when:
// a plan that computes a forward value again for the backward pass has the hash of one that keeps it.
#pragma once
#include <vector>

#include "weft/base/hash.h"
#include "weft/plan/graph/graph.h"

namespace weft::plan {

// hashes[v]: what value v computes, from the sources up.
std::vector<Digest> value_hashes(const Graph& graph);

// The outputs by name, in order.
Digest structural_hash(const Graph& graph);

}  // namespace weft::plan
