// weft/collectives/check/order_queries.h -- does one action come before another in every run?
//
// For many pairs at once. A column belongs to a thread and holds, at each node of the order, how far that
// thread has certainly come by then:
//
//      order of a run     0a   1a   0b   2a   1b          thread 0 has come to b in every run
//      column of 0         a    a    b    a    b   <--    that has come to node 1b
//
// A node's columns are the highest of those of the nodes before it, so a pass over the order fills
// several columns side by side. Threads of one rank are mostly ordered by that rank's own waits, and
// its nodes are few: what they do not settle goes over the nodes of all ranks.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/check/happens_before.h"

namespace weft::collective {

struct OrderQuery {
  std::int32_t earlier = 0, later = 0;  // nodes of different threads
};

// The first of the queries, in the order given, whose nodes are not ordered; -1: all are. Which one is the
// first may be missed where several fail.
// REQUIRES: `order` is one in which the nodes can run; queries come in that order of `later`.
std::int64_t find_unordered(const HappensBefore& graph, std::span<const std::int32_t> order,
                            std::span<const OrderQuery> queries);

// Settles most queries at a glance: true only if `earlier` comes before `later`.
bool plainly_ordered(const HappensBefore& graph, const OrderQuery& query);

}  // namespace weft::collective
