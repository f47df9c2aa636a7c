// weft/runtime/run/fold_weights.h -- computes what depends only on weights once instead of for every batch.
//
//   x ─────────────┐                    once                       every batch
//   w ─┐           ├─ conv ─▶ y         w ─┐                       x ──────────┐
//   g ─┴─ mul ─────┘                    g ─┴─ mul ─▶ (kept) 0      (kept) 0 ───┴─ conv ─▶ y
//
// A rewrite that moves a scale into the weights saves work per row of a batch and adds some on the
// weights. As long as these do not change, the added work is done once. Views of weights, such as
// transposes or slices, cost nothing and stay in the batch plan.
#pragma once
#include <optional>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/runtime/run/run_plan.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {

struct FoldedPlan {
  plan::Graph once;   // its outputs are parameters of `batch` with the same names
  plan::Graph batch;  // has the original outputs
};

// Empty if no work depends only on weights. States that a step updates do not count as weights.
Result<std::optional<FoldedPlan>> fold_weights(const plan::Graph& graph);

// Computes the outputs of a plan that reads only weights.
Result<Tensors> compute_once(plan::Graph once, const Weights& weights, const PlanRunOptions& options = {});

}  // namespace weft::run
