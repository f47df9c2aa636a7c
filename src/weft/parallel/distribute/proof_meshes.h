// weft/parallel/distribute/proof_meshes.h -- the small meshes that a plan is proven on.
//
//   node=128, gpu=8     node=2, gpu=3 and node=3, gpu=2
//   rank=2              rank=2
//
// Two ranks an axis hide what three show: a permutation by two ranks, an order of slices. Axes differ in size,
// so that one does not stand for the other. A plan that speaks of ranks by number (permute-ranks,
// broadcast-from) has as many on that axis as its numbers need, up to all of them.
#pragma once
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/layout.h"

namespace weft::distribute {

// One or two, alike in nothing but their axes; no axis is longer than the plan's own.
std::vector<plan::Mesh> proof_meshes(const DistributedPlan& plan);

// How many ranks up a permutation moves values, at its shortest: by 7 of 8 ranks is by -1.
std::int64_t shortest_shift(std::int64_t by, std::int32_t ranks);

}  // namespace weft::distribute
