// weft/parallel/distribute/stage_meshes.h -- combines different stage meshes into common axes.
//
//   stage 0 on data=4: slice b                                        ranks 0 1 2 3
//   stage 1 on data=2: slice b; stage 1 on gpu=2: slice h             ranks 0 1 | 2 3
//
//   data=2: slice b; gpu=2: slice b, in stage 1 slice h               common axes of both meshes
//
// An axis that other stages split in two becomes two axes here, both used alike. That gives blocks
// of blocks: if sizes divide evenly, each rank holds what it would hold along the single axis. So a
// value that moves between the meshes of two stages has a layout on the same axes at both ends, and
// its communication is found as within one mesh (convert.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"

namespace weft::distribute {

// One axis of the mesh of some stages, outermost first.
struct OwnAxis {
  std::int32_t first = 0, last = 0;  // stages
  plan::MeshAxis axis;
  AxisUse use;
  Span span = {};  // source location
};

// Adds axes that refine all these meshes to a distribution that has only the stage axis. Fails,
// with the source location, if a stage has no mesh, does not exist, or differs from the first in
// its number of ranks, and if the blocks of two meshes do not nest.
Status take_stage_meshes(Distribution& distribution, const std::vector<OwnAxis>& own);

// Fails if an axis names a stage that does not exist, names one twice, or names stages without a
// stage axis.
Status check_in_stages(const Distribution& distribution);

std::string print_stages(std::int32_t first, std::int32_t last);  // "stage 1", "stages 2 to 5"

// "slice b, shard optimizer": how all stages use an axis; empty if it is unused.
std::string print_use(const AxisUse& use);
// The mesh of one stage as a user would write it: "data=4: slice b". Adjacent axes with equal use
// are merged under the name of the first.
std::string print_stage_mesh(const Distribution& distribution, std::int32_t stage);

}  // namespace weft::distribute
