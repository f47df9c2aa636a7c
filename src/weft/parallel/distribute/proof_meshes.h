// weft/parallel/distribute/proof_meshes.h -- small meshes on which a plan is proven.
//
//   node=128, gpu=8     node=2, gpu=3 and node=3, gpu=2
//   rank=2              rank=2
//
// Two ranks per axis hide errors that three show: a permutation by two ranks, the order of slices.
// Axes differ in size, so that swapped axes are noticed. An axis whose ranks a plan refers to by
// number (permute-ranks, broadcast-from) gets enough ranks for these numbers, up to its full size.
#pragma once
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/layout.h"

namespace weft::distribute {

// One or two meshes with the plan's axes but other sizes; no axis is longer than the plan's own.
std::vector<plan::Mesh> proof_meshes(const DistributedPlan& plan);

// The signed shift of a permutation by the shorter direction: by 7 of 8 ranks is by -1.
std::int64_t shortest_shift(std::int64_t by, std::int32_t ranks);

}  // namespace weft::distribute
