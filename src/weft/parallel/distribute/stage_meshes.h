// weft/parallel/distribute/stage_meshes.h -- stages that have meshes of their own, as what they do with the axes of one.
//
//   stage 0 on data=4: slice b                                        ranks 0 1 2 3
//   stage 1 on data=2: slice b; stage 1 on gpu=2: slice h             ranks 0 1 | 2 3
//
//   data=2: slice b; gpu=2: slice b, in stage 1 slice h               the cuts of both: each is a mesh of these axes
//
// An axis of a stage that other stages cut in two is two axes here, both used alike: in blocks of blocks, so where
// sizes divide each of its ranks holds what it would hold along the one. So a value on its way from one stage's mesh to another's has a
// layout on the same axes at both ends, and what is moved for it is found as within a mesh (convert.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"

namespace weft::distribute {

// One axis of the mesh of some stages, the outermost first.
struct OwnAxis {
  std::int32_t first = 0, last = 0;  // stages
  plan::MeshAxis axis;
  AxisUse use;
  Span span = {};  // where it is written
};

// Adds the axes that all these meshes are made of to a distribution that has the stages' axis alone. Fails, with the
// place, where a stage has no mesh, is none, or has another number of ranks than the first, and where two meshes are cut
// in blocks that do not lie in one another.
Status take_stage_meshes(Distribution& distribution, const std::vector<OwnAxis>& own);

// Fails where stages are named that there are none of, one is named twice on an axis, or there are no stages at all.
Status check_in_stages(const Distribution& distribution);

std::string print_stages(std::int32_t first, std::int32_t last);  // "stage 1", "stages 2 to 5"

// "slice b, shard optimizer": what all stages use an axis for; nothing where that is nothing.
std::string print_use(const AxisUse& use);
// The mesh of one stage as it would be written: "data=4: slice b". Axes next to each other that are used alike are
// one, by the name of the first.
std::string print_stage_mesh(const Distribution& distribution, std::int32_t stage);

}  // namespace weft::distribute
