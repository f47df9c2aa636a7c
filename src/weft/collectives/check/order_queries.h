// weft/collectives/check/order_queries.h -- does one action come before another in every run?
//
// Answers many pairs at once. A column belongs to a thread and holds, at each node of the order,
// the last node of that thread that is certain to have run by then:
//
//      order of a run     0a   1a   0b   2a   1b          thread 0 has come to b in every run
//      column of 0         a    a    b    a    b   <--    that has come to node 1b
//
// A node's columns are the maxima over its predecessors, so one pass over the order fills several
// columns side by side. Threads of one rank are mostly ordered by that rank's own waits, and its
// nodes are few. Queries that these do not answer go over the nodes of all ranks.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/check/happens_before.h"

namespace weft::collective {

struct OrderQuery {
  std::int32_t earlier = 0, later = 0;  // nodes of different threads
};

// The index of a query whose nodes are unordered; -1: none. If several are unordered, it is usually
// but not always the first.
// REQUIRES: the nodes can run in `order`; queries are sorted by the position of `later` in it.
std::int64_t find_unordered(const HappensBefore& graph, std::span<const std::int32_t> order,
                            std::span<const OrderQuery> queries);

// A quick test that answers most queries: true only if `earlier` comes before `later`.
bool trivially_ordered(const HappensBefore& graph, const OrderQuery& query);

}  // namespace weft::collective
