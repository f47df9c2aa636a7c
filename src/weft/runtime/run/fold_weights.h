// weft/runtime/run/fold_weights.h -- what depends on weights alone, computed once and not for every batch.
//
//   x ─────────────┐                    once                       every batch
//   w ─┐           ├─ conv ─▶ y         w ─┐                       x ──────────┐
//   g ─┴─ mul ─────┘                    g ─┴─ mul ─▶ (kept) 0      (kept) 0 ───┴─ conv ─▶ y
//
// A rewrite that moves a scale into the weights saves work for each row of a batch and adds some for the
// weights; as long as these do not change, that is paid once. What merely looks at a weight in another way, a
// transpose or a slice, costs nothing and stays.
#pragma once
#include <optional>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/runtime/run/run_plan.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {

struct FoldedPlan {
  plan::Graph once;   // the outputs are what the other reads as parameters of the same names
  plan::Graph batch;  // the plan's own outputs
};

// Nothing where no work depends on weights alone. States that a step renews are no weights.
Result<std::optional<FoldedPlan>> fold_weights(const plan::Graph& graph);

// The outputs of a plan that reads weights alone.
Result<Tensors> compute_once(plan::Graph once, const Weights& weights, const PlanRunOptions& options = {});

}  // namespace weft::run
