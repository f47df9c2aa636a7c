// weft/parallel/distribute/shrink.h -- a plan of one device at smaller sizes, where the model has no names for them.
//
//   image[b=64,c=3,h=224,w=224]            image[b=5,c=3,h=64,w=72]
//   conv1.kernel[o=64,c=3,r=11,q=11]       conv1.kernel[o=7,c=3,r=11,q=11]
//   fc1.weight[d=9216,o=4096]              fc1.weight[d=7,o=6]
//
// Indices that an operator walks by one loop are of one size and shrink together, wherever they stand
// (size_classes.h); so are one name's in several inputs, and the parts of what is split alike. Sources,
// positions and tables get their sizes from that, the types of all else follow; where they come out
// otherwise, as d above does, which is what the windows leave of h and w times o, what was tied to it is made
// again. Groups, slices, counts and seats of experts follow the sizes they are of.
//
// REQUIRES a plan without a backward pass: make that of the smaller plan.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct SmallSizes {
  std::int64_t kept = 16;     // sizes up to this stay: kernels, colours, heads
  std::int64_t multiple = 1;  // larger ones become multiples of this, and differ as far as they can
  std::int64_t rows = 32;     // what windows slide over becomes
  std::int64_t columns = 36;
  std::int64_t turn = 0;   // another choice of sizes
  bool grow_ones = false;  // an index of one element becomes one of several
  // Sizes that are equal stay equal, whatever they are of: rules have made one number of two that were.
  bool alike = false;
};

// Fails where the operators do not accept these sizes.
Result<plan::Graph> shrink(const plan::Graph& graph, const SmallSizes& sizes);

}  // namespace weft::distribute
