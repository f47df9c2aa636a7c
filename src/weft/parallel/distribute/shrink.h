// weft/parallel/distribute/shrink.h -- makes a single-device plan smaller.
//
//   image[b=64,c=3,h=224,w=224]            image[b=5,c=3,h=64,w=72]
//   conv1.kernel[o=64,c=3,r=11,q=11]       conv1.kernel[o=7,c=3,r=11,q=11]
//   fc1.weight[d=9216,o=4096]              fc1.weight[d=7,o=6]
//
// Indices that one loop of an operator covers have one size and shrink together (size_classes.h).
// So do indices of one name in several inputs, and the results of equal splits. Sources, positions
// and tables get their sizes from these classes; the types of all other values follow. A type may
// come out different, such as d above, which is o times what the windows leave of h and w. Then the
// nodes that depend on that class are made again. Group counts, slices, element counts and expert
// capacities follow the sizes that they depend on.
//
// REQUIRES a plan without a backward pass: derive that from the smaller plan.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

struct SmallSizes {
  std::int64_t kept = 16;     // sizes up to this stay: kernels, colours, heads
  std::int64_t multiple = 1;  // larger ones become multiples of this, as different as possible
  std::int64_t rows = 32;     // the image size that windows slide over
  std::int64_t columns = 36;
  std::int64_t turn = 0;   // selects another choice of sizes
  bool grow_ones = false;  // indices of size one get several elements
  // Equal sizes stay equal even for unrelated indices: rules may have merged their constants.
  bool alike = false;
};

// Fails if the operators do not accept these sizes.
Result<plan::Graph> shrink(const plan::Graph& graph, const SmallSizes& sizes);

}  // namespace weft::distribute
