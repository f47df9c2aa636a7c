// weft/parallel/partition/exact_buckets.h -- the best buckets of a small graph, by looking at all that could be best.
#pragma once
#include <span>

#include "weft/parallel/partition/graph_buckets.h"

namespace weft::partition {

// REQUIRES: at most kMostExact operations.
GraphBuckets exact_buckets(std::span<const Operation> graph, const Wire& wire, Release release);

}  // namespace weft::partition
