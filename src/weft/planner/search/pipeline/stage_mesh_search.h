// weft/planner/search/pipeline/stage_mesh_search.h -- search for a different mesh on some stages.
//
//   gpu=8: slice h, f                         1f1b holds most activations on its first stages: the last
//   gpu=8: slice h, f, in stage 3 slice b     ones have memory for a mesh with less communication, and an
//                                             embedding or a head may need another mesh than the layers
//
// Starts from the best plan with one mesh for all stages. Some first or last stages then use one of
// its axes, or a factor of it, for the batch instead of the model, or the reverse. Each kind of
// stage is simulated once. Each choice of stages is cut and estimated again.
#pragma once
#include <optional>

#include "weft/base/result.h"
#include "weft/planner/search/pipeline/choose_pipeline.h"

namespace weft::search {

// Returns nothing if no other meshes are sufficiently faster. `model`: the indices that an axis may
// slice for the model (split_uses.h).
std::optional<ChosenPipeline> with_stage_meshes(const PipelineProblem& problem, const ChosenPipeline& found,
                                                const std::vector<std::string>& model);

}  // namespace weft::search
