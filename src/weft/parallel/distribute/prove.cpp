#include "weft/parallel/distribute/prove.h"

#include "weft/base/random.h"
#include "weft/parallel/distribute/choices.h"
#include "weft/parallel/distribute/compare_plans.h"
#include "weft/parallel/distribute/decompose_nodes.h"
#include "weft/parallel/distribute/half_dropout.h"
#include "weft/parallel/distribute/marked_rounding.h"
#include "weft/parallel/distribute/requirements.h"
#include "weft/plan/graph/hash.h"

namespace weft::distribute {
namespace {

// Both plans as they are compared, with the model's dropout rates or one half. Not movable: it
// holds pointers to itself.
struct Prepared {
  plan::Graph original, open, graph;  // empty if the caller's are used
  spmd::MeshPlan ranks;
  Choices choices, own;
  ComparedPlans compared;
};

Status open_and_place(const DistributedPlan& plan, Prepared& made) {
  made.compared.plan = &plan;
  made.compared.open = made.compared.original;
  WEFT_TRY(choices, Choices::of(*made.compared.original,
                                new_constants(*made.compared.original, *made.compared.graph)));
  made.choices = std::move(choices);
  made.compared.choices = &made.choices;
  std::vector<bool> is_own(plan.graph.node_count());
  for (std::size_t n = 0; n < is_own.size(); ++n) is_own[n] = plan.is_own(plan::NodeId(n));
  WEFT_TRY(own, Choices::of_own(*made.compared.graph, is_own));
  made.own = std::move(own);
  made.compared.own = &made.own;
  if (!plan.opened.empty()) {
    WEFT_TRY(opened, decompose_nodes(*made.compared.original, plan.opened));
    made.open = std::move(opened);
    made.compared.open = &made.open;
  }
  WEFT_TRY(ranks, spmd::plan_of_ranks(made.own.asked(), plan.mesh));
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

// Finds outputs that are rounded differently from the single-device plan, whatever the decisions
// are.
Status compare_rounding(const plan::Graph& original, const DistributedPlan& plan, Random& random,
                        PlanProof& proof) {
  const std::string one_device = rounded_to(original), spread = rounded_to(plan.graph);
  if (one_device.empty() && spread.empty()) return {};
  WEFT_TRY(shown, with_marked_rounding(original));
  WEFT_TRY(graph, with_marked_rounding(plan.graph, plan.layouts));
  WEFT_TRY(choices, Choices::of(shown));
  choices.want_pairs_alone();
  WEFT_TRY(ranks, spmd::plan_of_ranks(graph, plan.mesh));
  const ComparedPlans compared{.original = &shown,
                               .choices = &choices,
                               .differing = &proof.rounded,
                               .open = &shown,
                               .plan = &plan,
                               .graph = &graph,
                               .ranks = &ranks};
  do {
    WEFT_TRY_STATUS(compare<ops::Field>(compared, random, proof.elements));
    ++proof.draws;
  } while (!choices.is_done());
  if (!proof.rounded.empty()) proof.rounded_to = spread.empty() ? one_device : spread;
  return {};
}

}  // namespace

Result<PlanProof> prove(const plan::Graph& original, const DistributedPlan& plan,
                        const ProveOptions& options) {
  PlanProof proof;
  if (auto broken = find_broken_requirement(original, plan)) {
    proof.wrong = Disagreement{broken->node, -1, std::move(broken->what)};
    return proof;
  }
  const bool drops = has_dropout(original) || has_dropout(plan.graph);
  Prepared as_is, halved;
  as_is.compared.original = &original;
  as_is.compared.graph = &plan.graph;
  WEFT_TRY_STATUS(open_and_place(plan, as_is));
  if (drops) WEFT_TRY_STATUS(prepare_halved(original, plan, halved));
  // The seed depends on the plan, so that no plan can be fitted to the values that will be drawn.
  Random random(options.seed, plan::structural_hash(plan.graph).low);
  // One half tells dropout streams apart; the original rates are compared once. The f64 run uses
  // one half too.
  Prepared& main = drops ? halved : as_is;
  const auto compare_in = [&](const ComparedPlans& plans, auto zero) -> Status {
    WEFT_TRY(wrong, compare<decltype(zero)>(plans, random, proof.elements));
    proof.wrong = std::move(wrong);
    return {};
  };
  if (drops) WEFT_TRY_STATUS(compare_in(as_is.compared, ops::Field()));
  const auto is_enough = [&] {
    constexpr std::int64_t kMostForOwn = 48;
    return proof.draws >= options.draws && main.choices.is_done() &&
           (main.own.all_seen() || proof.draws >= kMostForOwn);
  };
  for (proof.draws = drops ? 1 : 0; proof.holds() && !is_enough(); ++proof.draws)
    WEFT_TRY_STATUS(compare_in(main.compared, ops::Field()));
  if (proof.holds()) WEFT_TRY_STATUS(compare_rounding(original, plan, random, proof));
  if (options.in_floats && proof.holds()) WEFT_TRY_STATUS(compare_in(main.compared, double()));
  proof.unseen = main.choices.all_seen() ? main.own.unseen() : main.choices.unseen();
  return proof;
}

}  // namespace weft::distribute
