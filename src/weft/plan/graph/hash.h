// weft/plan/graph/hash.h -- structural hash of a plan.
//
// Two plans with the same outputs, computed by the same operators from the same sources, have equal
// hashes on every machine and in every run. The order of insertion, labels, scopes, phases and dead
// nodes do not matter. The hash covers what is computed, not when: recomputing a forward value in
// the backward pass does not change it.
#pragma once
#include <vector>

#include "weft/base/hash.h"
#include "weft/plan/graph/graph.h"

namespace weft::plan {

// hashes[v] identifies the computation of value v, from the sources up.
std::vector<Digest> value_hashes(const Graph& graph);

// Hashes the outputs by name, in order.
Digest structural_hash(const Graph& graph);

}  // namespace weft::plan
