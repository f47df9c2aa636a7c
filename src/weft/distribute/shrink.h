// weft/distribute/shrink.h -- a plan of one device at smaller sizes, where the model has no names for them.
//
//   image[b=64,c=3,h=224,w=224]            image[b=4,c=3,h=64,w=64]
//   conv1.kernel[o=64,c=3,r=11,q=11]       conv1.kernel[o=4,c=3,r=11,q=11]
//   fc1.weight[d=9216,o=4096]              fc1.weight[d=4,o=4]
//
// Sources are made smaller and the types of all else follow. What windows slide over has a size of its own,
// as it must outlast them all. A source that meets a value along an index takes its size from it: d above is
// what the windows leave of h and w, times o. REQUIRES a plan without a backward pass: make that of the
// smaller plan.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/plan/graph.h"

namespace weft::distribute {

struct SmallSizes {
  std::int64_t kept = 16;   // sizes up to this stay: kernels, colours, heads
  std::int64_t few = 4;     // what larger ones become
  std::int64_t image = 32;  // what windows slide over becomes
};

// Fails where the operators do not accept these sizes.
Result<plan::Graph> shrink(const plan::Graph& graph, const SmallSizes& sizes);

}  // namespace weft::distribute
