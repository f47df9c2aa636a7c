#include "weft/parallel/pipeline/prove_pipelined.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/parallel/distribute/choices.h"
#include "weft/parallel/distribute/compare_plans.h"
#include "weft/parallel/distribute/draw_sources.h"
#include "weft/parallel/distribute/marked_rounding.h"
#include "weft/parallel/distribute/requirements.h"
#include "weft/parallel/pipeline/interpret_ranks.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/unroll.h"
#include "weft/plan/graph/hash.h"
#include "weft/plan/ops/exchange.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/mesh.h"

namespace weft::pipeline {
namespace {

using distribute::PlanProof;
using ops::Field;
using ops::Tensor;
using plan::Graph;
using plan::NodeId;
using plan::NodeView;

// A source of the whole model, and each rank's shard of it and of its next value, within a stage.
struct Held {
  plan::Type type;
  plan::Layout layout;
  Tensor<Field> whole;
  std::vector<Tensor<Field>> parts;  // by rank within the stage
};

class PipelineProof {
 public:
  // `rounded`: collects outputs that differ instead of reporting a disagreement; null: differences
  // are reported.
  PipelineProof(const Graph& original, distribute::Choices& choices, const distribute::DistributedPlan& plan,
                std::uint64_t seed, std::set<std::string>* rounded)
      : original_(original),
        choices_(choices),
        plan_(plan),
        rounded_(rounded),
        mesh_(inner_mesh(plan.time->distribution)),
        random_(seed, plan::structural_hash(plan.graph).low),
        leads_to_(distribute::whole_numbers({&original, &plan.graph})) {}

  Result<PlanProof> run(std::span<const Graph* const> ranks) {
    const ops::Sources<Field> whole = [&](std::string_view name) -> const Tensor<Field>* {
      const auto found = held_.find(name);
      return found == held_.end() ? nullptr : &found->second.whole;
    };
    const auto run_whole = [&](distribute::Ties ties) -> Result<std::vector<Tensor<Field>>> {
      numbers_.key = distribute::balanced_key(random_);
      WEFT_TRY_STATUS(draw(ties));
      return ops::interpret<Field>(choices_.asked(), whole, numbers_, distribute::kMostProvenElements);
    };
    WEFT_TRY(expected, distribute::search_choices(choices_, run_whole));
    WEFT_TRY_STATUS(cut_all());
    expected.resize(original_.outputs().size());
    const RankSources<Field> shares = [&](std::int32_t rank, std::string_view name) -> const Tensor<Field>* {
      const auto found = held_.find(name);
      return found == held_.end() ? nullptr : &found->second.parts[inner_of(rank)];
    };
    // Not failures of the plan: other sizes may have no empty shards, and equal micro-batches.
    WEFT_TRY_STATUS(check_interpretable(ranks));
    WEFT_TRY_STATUS(check_sources(ranks, shares));
    PlanProof proof;
    proof.draws = 1;
    auto outputs = interpret_ranks<Field>(ranks, plan_.time->distribution.mesh, shares, numbers_,
                                          distribute::kMostProvenElements);
    if (!outputs.ok()) {
      proof.wrong = distribute::Disagreement{NodeId(0u), -1, outputs.error().message};
      return proof;
    }
    WEFT_TRY_STATUS(compare(expected, ranks, *outputs, proof));
    return proof;
  }

 private:
  static Status check_sources(std::span<const Graph* const> ranks, const RankSources<Field>& shares) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      for (std::size_t n = 0; n < ranks[rank]->node_count(); ++n) {
        const NodeView node = ranks[rank]->view(NodeId(n));
        if (!ops::is_source(node.op())) continue;
        const Tensor<Field>* const given = shares(static_cast<std::int32_t>(rank), node.word(0));
        if (given != nullptr && given->sizes != ops::sizes_of(node.result_type(0).dims))
          return user_error(fmt::format("{} is sliced differently at these sizes", node.word(0)));
      }
    return {};
  }

  std::size_t inner_of(std::int32_t rank) const {
    return static_cast<std::size_t>(inner_rank(plan_.time->distribution, rank));
  }

  Result<std::vector<Tensor<Field>>> cut(const Tensor<Field>& whole, const Held& held) {
    if (mesh_.axes.empty()) return std::vector{whole};
    WEFT_TRY(parts, spmd::split_for_mesh<Field>(whole, held.type, held.layout, mesh_, numbers_, random_));
    return std::move(parts.ranks);
  }

  // For ranks with unequal numbers of micro-batches, or with rows that are not adjacent.
  void take_rows(NodeId input, Held& held) const {
    if (!unequal_axis(plan_.time->distribution) && !distribute::has_stage_meshes(plan_.time->distribution))
      return;
    for (std::int32_t rank = 0; rank < plan_.time->distribution.mesh.ranks(); ++rank) {
      Tensor<Field>& part = held.parts[inner_of(rank)];
      part = held.whole;
      const std::vector<plan::Share> shares = pipelined_shares(plan_, input, rank);
      for (std::size_t d = 0; d < shares.size(); ++d) part = ops::block_of(part, d, shares[d]);
    }
  }

  Status draw(distribute::Ties ties) {
    held_.clear();
    const Graph& graph = plan_.graph;
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const NodeView node = graph.view(NodeId(n));
      if (!ops::is_source(node.op())) continue;
      Held held;
      held.type = node.result_type(0);
      if (held.type.elements() > distribute::kMostProvenElements)
        return user_error(fmt::format("{} is too large to prove by running", node.word(0)));
      held.layout = layout_in_stage(plan_, plan_.layouts[node.result(0).value]);
      const auto leads_to = leads_to_.find(node.word(0));
      held.whole = distribute::draw_source<Field>(
          node, leads_to == leads_to_.end() ? distribute::WholeNumbers() : leads_to->second, {.ties = ties},
          numbers_, random_);
      held_.emplace(node.word(0), std::move(held));
    }
    return {};
  }

  Status cut_all() {
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(NodeId(n));
      if (!ops::is_source(node.op())) continue;
      Held& held = held_.find(node.word(0))->second;
      WEFT_TRY(parts, cut(held.whole, held));
      held.parts = std::move(parts);
      if (&node.op() == &ops::input()) take_rows(node.id(), held);
    }
    return {};
  }

  Status compare(const std::vector<Tensor<Field>>& expected, std::span<const Graph* const> ranks,
                 const std::vector<std::vector<Tensor<Field>>>& outputs, PlanProof& proof) {
    for (std::size_t o = 0; o < expected.size() && proof.holds(); ++o) {
      const plan::Output& output = original_.outputs()[o];
      const std::string name(original_.text(output.name));
      if (!output.updates.valid() && original_.type(output.value).rank() != 0) continue;
      std::vector<Tensor<Field>> wanted(static_cast<std::size_t>(mesh_.ranks()), expected[o]);
      if (output.updates.valid()) {
        const auto source = held_.find(original_.text(output.updates));
        if (source == held_.end()) continue;
        WEFT_TRY(parts, cut(expected[o], source->second));
        wanted = std::move(parts);
      }
      std::set<std::size_t> made;  // ranks within the stage
      for (std::size_t rank = 0; rank < ranks.size() && proof.holds(); ++rank)
        for (std::size_t i = 0; i < ranks[rank]->outputs().size(); ++i) {
          if (ranks[rank]->text(ranks[rank]->outputs()[i].name) != name) continue;
          const std::size_t inner = inner_of(static_cast<std::int32_t>(rank));
          made.insert(inner);
          proof.elements += outputs[rank][i].elements();
          if (outputs[rank][i].data == wanted[inner].data) continue;
          if (rounded_ != nullptr) {
            rounded_->insert(name);
            continue;
          }
          proof.wrong = distribute::Disagreement{
              NodeId(0u), static_cast<std::int32_t>(rank),
              fmt::format("{} on rank {} differs from a single device with the whole batch", name, rank)};
        }
      if (proof.holds() && made.size() != wanted.size())
        proof.wrong = distribute::Disagreement{NodeId(0u), -1, fmt::format("no rank makes {}", name)};
    }
    return {};
  }

  const Graph& original_;
  distribute::Choices& choices_;
  const distribute::DistributedPlan& plan_;
  std::set<std::string>* const rounded_;
  const plan::Mesh mesh_;
  Random random_;
  const std::map<std::string, distribute::WholeNumbers, std::less<>> leads_to_;  // by source
  ops::Numbers<Field> numbers_;
  std::map<std::string, Held, std::less<>> held_;
};

}  // namespace

namespace {

// Repeats until all decisions are covered.
Status prove_choices(const Graph& original, const distribute::DistributedPlan& plan,
                     std::span<const Graph* const> ranks, std::uint64_t seed, PlanProof& all,
                     std::set<std::string>* rounded) {
  constexpr std::uint64_t kBetweenSeeds = 7919;
  WEFT_TRY(choices, distribute::Choices::of(original, distribute::new_constants(original, plan.graph)));
  if (rounded != nullptr) choices.want_pairs_alone();
  for (std::uint64_t draw = 0; all.holds() && (draw == 0 || !choices.is_done()); ++draw) {
    WEFT_TRY(proof, PipelineProof(original, choices, plan, seed + draw * kBetweenSeeds, rounded).run(ranks));
    all.draws += proof.draws;
    all.elements += proof.elements;
    all.wrong = std::move(proof.wrong);
  }
  if (rounded == nullptr) all.unseen = choices.unseen();
  return {};
}

Status compare_rounding(const Graph& original, const distribute::DistributedPlan& plan,
                        std::span<const Graph* const> ranks, std::uint64_t seed, PlanProof& proof) {
  const std::string one_device = distribute::rounded_to(original),
                    spread = distribute::rounded_to(plan.graph);
  if (one_device.empty() && spread.empty()) return {};
  WEFT_TRY(shown, distribute::with_marked_rounding(original));
  std::vector<Graph> made;
  for (const Graph* rank : ranks) {
    WEFT_TRY(graph, distribute::with_marked_rounding(*rank));
    made.push_back(std::move(graph));
  }
  std::vector<const Graph*> shown_ranks;
  for (const Graph& graph : made) shown_ranks.push_back(&graph);
  WEFT_TRY_STATUS(prove_choices(shown, plan, shown_ranks, seed, proof, &proof.rounded));
  if (!proof.rounded.empty()) proof.rounded_to = spread.empty() ? one_device : spread;
  return {};
}

}  // namespace

Result<PlanProof> prove_ranks(const Graph& original, const distribute::DistributedPlan& plan,
                              std::span<const Graph* const> ranks, std::uint64_t seed) {
  PlanProof proof;
  WEFT_TRY_STATUS(prove_choices(original, plan, ranks, seed, proof, nullptr));
  if (proof.holds()) WEFT_TRY_STATUS(compare_rounding(original, plan, ranks, seed, proof));
  return proof;
}

Result<PlanProof> prove_pipelined(const Graph& original, const distribute::DistributedPlan& plan,
                                  std::uint64_t seed) {
  if (auto broken = distribute::find_broken_requirement(original, plan)) {
    PlanProof proof;
    proof.wrong = distribute::Disagreement{broken->node, -1, std::move(broken->what)};
    return proof;
  }
  std::vector<Unrolled> made;
  for (std::int32_t rank = 0; rank < plan.time->distribution.mesh.ranks(); ++rank) {
    WEFT_TRY(one, unroll(plan, rank));
    made.push_back(std::move(one));
  }
  std::vector<const Graph*> ranks;
  for (const Unrolled& one : made) ranks.push_back(&one.graph);
  WEFT_TRY(proof, prove_ranks(original, plan, ranks, seed));
  // The samples do not observe decisions of the plan's own nodes.
  std::vector<bool> is_own(plan.graph.node_count());
  for (std::size_t n = 0; n < is_own.size(); ++n) is_own[n] = plan.is_own(NodeId(n));
  WEFT_TRY(own, distribute::Choices::of_own(plan.graph, is_own));
  if (proof.is_proven()) proof.unseen = own.unseen();
  return proof;
}

}  // namespace weft::pipeline
