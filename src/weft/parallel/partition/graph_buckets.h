// weft/parallel/partition/graph_buckets.h -- the same where computing and transfers are a graph, not a chain.
//
//   computing  | a | b |     | d | e |      Operations need others. One computes at a time, and one bucket of
//   wire           |-a' b'-|                transfers is on the wire at a time; it begins when all that its
//                                           members need is done. d needs a', e needs b' and d.
//
// Three things are chosen at once: in which order to compute, which transfers go together, and in which order.
// Of up to `kMostExact` operations the answer is the best there is; of more it is the best of what a chain's
// buckets, fixed ones and small changes of these come to.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/parallel/partition/buckets.h"

namespace weft::partition {

struct Operation {
  double seconds = 0;                    // of computing
  double bytes = 0;                      // above 0: a transfer, which computes nothing
  std::vector<std::int32_t> needs = {};  // earlier operations
};

inline bool is_transfer(const Operation& operation) { return operation.bytes > 0; }

struct GraphBuckets {
  std::vector<std::int32_t> computing;             // operations, in their order
  std::vector<std::vector<std::int32_t>> buckets;  // transfers, likewise
  double seconds = 0;
};

constexpr std::size_t kMostExact = 12;

// REQUIRES: operations need only earlier ones; numbers as bucketise() has them.
GraphBuckets bucketise(std::span<const Operation> graph, const Wire& wire,
                       Release release = Release::together);

// What an order and buckets take; infinitely long where they wait for each other. REQUIRES: each operation
// stands where it belongs, once.
double seconds_of(std::span<const Operation> graph, const Wire& wire, const GraphBuckets& order,
                  Release release = Release::together);

// In the graph's order, transfers in buckets that are closed when they hold so many bytes or more, or when
// somebody needs one of them.
GraphBuckets fixed_buckets(std::span<const Operation> graph, const Wire& wire, double bytes, Release release);

}  // namespace weft::partition
