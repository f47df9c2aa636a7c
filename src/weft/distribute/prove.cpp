#include "weft/distribute/prove.h"

#include <algorithm>

#include "weft/base/random.h"
#include "weft/distribute/compare_plans.h"
#include "weft/distribute/half_dropout.h"
#include "weft/distribute/open_nodes.h"
#include "weft/distribute/promises.h"
#include "weft/ops/operators.h"
#include "weft/plan/hash.h"

namespace weft::distribute {
namespace {

// Both plans as they are compared, at the rates of the model or at one half.
struct Prepared {
  plan::Graph original, open, graph;  // empty where they are the caller's
  spmd::MeshPlan ranks;
  ComparedPlans compared;
};

Status open_and_place(const DistributedPlan& plan, Prepared& made) {
  made.compared.plan = &plan;
  made.compared.open = made.compared.original;
  if (!plan.opened.empty()) {
    WEFT_TRY(opened, open_nodes(*made.compared.original, plan.opened));
    made.open = std::move(opened);
    made.compared.open = &made.open;
  }
  WEFT_TRY(ranks, spmd::plan_of_ranks(*made.compared.graph, plan.mesh));
  made.ranks = std::move(ranks);
  made.compared.ranks = &made.ranks;
  return {};
}

Status prepare_halved(const plan::Graph& original, const DistributedPlan& plan, Prepared& made) {
  WEFT_TRY(one_device, with_half_dropout(original));
  WEFT_TRY(spread, with_half_dropout(plan.graph));
  made.original = std::move(one_device);
  made.graph = std::move(spread);
  made.compared.original = &made.original;
  made.compared.graph = &made.graph;
  return open_and_place(plan, made);
}

// Whether a single number decides which of two values the plan takes: one draw shows one of them alone. That is so of a
// norm's smaller one as well, whose parts floats may not tell apart; of a larger one, which counts, they do.
bool has_choice(const plan::Graph& graph) {
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (&node.op() == &ops::select() && node.input_type(0).rank() == 0 && node.result_type(0).rank() > 0)
      return true;
    if (&node.op() == &ops::minimum() && node.result_type(0).rank() == 0) return true;
  }
  return false;
}

}  // namespace

Result<PlanProof> prove(const plan::Graph& original, const DistributedPlan& plan,
                        const ProveOptions& options) {
  PlanProof proof;
  if (auto broken = find_broken_promise(original, plan)) {
    proof.wrong = Disagreement{broken->node, -1, std::move(broken->what)};
    return proof;
  }
  const bool drops = has_dropout(original) || has_dropout(plan.graph);
  Prepared as_is, halved;
  as_is.compared.original = &original;
  as_is.compared.graph = &plan.graph;
  WEFT_TRY_STATUS(open_and_place(plan, as_is));
  if (drops) WEFT_TRY_STATUS(prepare_halved(original, plan, halved));
  // Another plan meets other values: none can be made to fit those that will be drawn.
  Random random(options.seed, plan::structural_hash(plan.graph).low);
  constexpr std::int64_t kDrawsOfChoices = 6;
  const std::int64_t draws = has_choice(original) ? std::max(options.draws, kDrawsOfChoices) : options.draws;
  for (; proof.draws < draws && proof.holds(); ++proof.draws) {
    // Streams show at one half, rates as they are; what runs in floats drops one half too.
    const bool halves = drops && proof.draws % 2 == (options.in_floats ? 1 : 0);
    WEFT_TRY(wrong, compare<ops::Field>(halves ? halved.compared : as_is.compared, random, proof.elements));
    proof.wrong = std::move(wrong);
  }
  if (options.in_floats && proof.holds()) {
    WEFT_TRY(wrong, compare<double>(drops ? halved.compared : as_is.compared, random, proof.elements));
    proof.wrong = std::move(wrong);
  }
  return proof;
}

}  // namespace weft::distribute
