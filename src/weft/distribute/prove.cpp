#include "weft/distribute/prove.h"

#include "weft/base/random.h"
#include "weft/distribute/choices.h"
#include "weft/distribute/compare_plans.h"
#include "weft/distribute/half_dropout.h"
#include "weft/distribute/open_nodes.h"
#include "weft/distribute/promises.h"
#include "weft/plan/hash.h"

namespace weft::distribute {
namespace {

// Both plans as they are compared, at the rates of the model or at one half. It stays where it is.
struct Prepared {
  plan::Graph original, open, graph;  // empty where they are the caller's
  spmd::MeshPlan ranks;
  Choices choices;
  ComparedPlans compared;
};

Status open_and_place(const DistributedPlan& plan, Prepared& made) {
  made.compared.plan = &plan;
  made.compared.open = made.compared.original;
  WEFT_TRY(choices, Choices::of(*made.compared.original));
  made.choices = std::move(choices);
  made.compared.choices = &made.choices;
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
  const auto is_enough = [&] {
    return proof.draws >= options.draws && as_is.choices.all_seen() && halved.choices.all_seen();
  };
  for (; proof.holds() && !is_enough(); ++proof.draws) {
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
