// weft/planner/search/pipeline/stage_mesh_search.h -- stages that are quicker on meshes of their own.
//
//   gpu=8: slice h, f                         1f1b holds most activations on its first stages: the last ones have
//   gpu=8: slice h, f, in stage 3 slice b     room for a cut that exchanges less, and an embedding or a head may
//                                             want another than the layers
//
// From the best plan of one mesh for all: some first or last stages use one of its axes, or a factor of it, for the
// batch where it cuts the model, or for the model where it cuts the batch. Each kind of stage is simulated once, and
// every choice of stages is cut and priced anew.
#pragma once
#include <optional>

#include "weft/base/result.h"
#include "weft/planner/search/pipeline/choose_in_time.h"

namespace weft::search {

// Nothing where no other meshes are enough quicker to be worth it. `model`: lists of indices that an axis may cut the
// model along, as splits have them (split_uses.h).
std::optional<ChosenInTime> with_stage_meshes(const InTimeProblem& problem, const ChosenInTime& found,
                                              const std::vector<std::string>& model);

}  // namespace weft::search
