#include "weft/session/fit_memory.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/cost/mesh_links.h"
#include "weft/distribute/distribution.h"
#include "weft/pipeline/unroll.h"
#include "weft/run/fit_program.h"
#include "weft/run/local_ranks_run.h"
#include "weft/session/plan_for.h"
#include "weft/session/plan_in_time.h"

namespace weft::session {
namespace {

using train::Recompute;

// "gpt_block.0", "gpt_block.1": the layers of REPEATs, by name.
std::vector<std::string> layers_of(const plan::Graph& graph) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    if (graph.phase(plan::NodeId(n)) != plan::Phase::forward) continue;
    plan::ScopeId found;
    plan::ScopeId scope = graph.node(plan::NodeId(n)).scope;
    for (int depth = 0; scope.valid() && depth < plan::kDeepestScope; ++depth) {
      if (graph.scope(scope).iteration >= 0) found = scope;
      scope = graph.scope(scope).parent;
    }
    if (!found.valid()) continue;
    std::string name = graph.path(found, {});
    if (known.insert(name).second) names.push_back(std::move(name));
  }
  return names;
}

// One of each stage: those of a stage are alike but for the last, which may have a smaller share.
std::vector<std::int32_t> ranks_to_look_at(const search::Choice& choice) {
  std::vector<std::int32_t> ranks = {0};
  if (!choice.spread) return ranks;
  const distribute::Distribution& distribution = choice.spread->distribution;
  const auto axis = distribute::stage_axis(distribution);
  if (!axis) return ranks;
  for (std::int32_t rank = 1; rank < distribution.mesh.ranks(); ++rank)
    if (distribution.mesh.coordinate(rank, *axis) == static_cast<std::int32_t>(ranks.size()))
      ranks.push_back(rank);
  return ranks;
}

class MemoryFitter {
 public:
  MemoryFitter(const Session::State& state, const Context& context, const Prepared& prepared, double limit)
      : state_(state), context_(context), prepared_(prepared), limit_(limit) {}

  // What fits without a file, with the least work; none.
  Result<std::optional<Recompute>> kept_in_memory() {
    const bool asked = prepared_.settings.recompute.has_value();
    WEFT_TRY(given, recompute_of(prepared_.settings));
    WEFT_TRY(as_given, fits(given));
    if (as_given) return std::optional(given);
    if (asked || !given.is_nothing()) return std::optional<Recompute>();
    const Recompute selective{.selective = true}, layers{.layers = true};
    WEFT_TRY(first, fits(selective));
    if (first) return std::optional(selective);
    WEFT_TRY(all, fits(layers));
    if (!all) return std::optional<Recompute>();
    // As few layers as fit, the first ones: their activations wait the longest.
    const std::vector<std::string> names = layers_of(prepared_.plan.graph);
    const auto some = [&](std::size_t count) {
      return Recompute{.selective = true,
                       .names = {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count)}};
    };
    std::size_t few = 0, many = names.size();
    while (few + 1 < many) {
      const std::size_t middle = (few + many) / 2;
      WEFT_TRY(enough, fits(some(middle)));
      (enough ? many : few) = middle;
    }
    return std::optional(many == names.size() ? layers : some(many));
  }

  // The plan that takes the least, as ranks that spill run it.
  Result<Recompute> spilling() {
    const bool asked = prepared_.settings.recompute.has_value();
    WEFT_TRY(given, recompute_of(prepared_.settings));
    // What is computed again takes no file: only what does not fit even so is spilled.
    std::vector<Recompute> candidates = {given};
    if (!asked && given.is_nothing()) candidates.insert(candidates.begin(), {.layers = true});
    std::optional<Recompute> best;
    for (const Recompute& what : candidates) {
      WEFT_TRY(memory, memory_of(what, /*spills=*/true));
      if (!best || memory.bytes < least_.bytes) best = what, least_ = memory;
      if (memory.bytes <= limit_) break;
    }
    if (least_.bytes <= limit_) return *best;
    return user_error(
        fmt::format(
            "no plan of {} trains within {} a rank: the least is {}, with {} recomputed and {} in a file",
            prepared_.run->model.text, print_bytes(limit_), print_bytes(least_.bytes),
            best->is_nothing() ? "nothing" : train::print(*best), print_bytes(least_.spilled)),
        prepared_.ranks > 1 ? "a larger limit, a smaller batch or more ranks"
                            : "a larger limit or a smaller batch",
        prepared_.run->span);
  }

 private:
  Result<bool> fits(const Recompute& what) {
    Result<RankMemory> memory = memory_of(what, /*spills=*/false);
    if (memory.ok()) return memory->bytes <= limit_;
    // The search says that nothing fits; what else is wrong is said when it is planned to run.
    if (prepared_.ranks > 1) return false;
    return std::move(memory).error();
  }

  Result<RankMemory> memory_of(const Recompute& what, bool spills) {
    return memory_with(state_, context_, prepared_, what, 0, spills ? limit_ : 0);
  }

  const Session::State& state_;
  const Context& context_;
  const Prepared& prepared_;
  const double limit_;
  RankMemory least_;
};

}  // namespace

Result<RankMemory> memory_with(const Session::State& state, const Context& context, const Prepared& prepared,
                               const Recompute& what, std::int64_t micro_batches, double spill_limit) {
  Prepared trial;
  trial.run = prepared.run;
  trial.settings = prepared.settings;
  trial.settings.recompute = what;
  trial.settings.spills = spill_limit > 0;
  trial.settings.prove = false;
  if (micro_batches > 0) trial.settings.micro_batches = micro_batches;
  trial.overrides = prepared.overrides;
  trial.target = prepared.target;
  trial.hosts = prepared.hosts;
  trial.threads = prepared.threads;
  trial.ranks = prepared.ranks;
  trial.fixed = prepared.fixed;
  trial.sizes = prepared.sizes;
  trial.goals = prepared.goals;
  trial.norm_shares = prepared.norm_shares;
  WEFT_TRY(given, recompute_of(prepared.settings));
  if (what == given) {
    trial.plan.graph = prepared.plan.graph.clone();
  } else {
    WEFT_TRY(again, train::recompute(prepared.plan.graph, what));
    trial.plan.graph = std::move(again.graph);
  }
  WEFT_TRY(choice, plan_to_run(state, prepared.ranks > 1 ? &context : nullptr, trial));
  const int workers =
      prepared.ranks > 1 ? workers_of(prepared.settings, prepared.target) : std::max(prepared.threads, 1);
  // Without a limit nothing is spilled; with one, what workers have to themselves is counted.
  constexpr double kNoLimit = 1e18;
  const bool here = cost::is_local(prepared.target);
  const auto limit = static_cast<std::int64_t>(spill_limit > 0 ? spill_limit : here ? kNoLimit : 0);
  RankMemory most;
  for (const std::int32_t rank : ranks_to_look_at(choice)) {
    WEFT_TRY(fitted, choice.spread ? run::fit_for_rank(choice.spread->chosen.plan, rank, workers, limit)
                                   : run::fit_program(std::make_shared<plan::Graph>(choice.plan.clone()),
                                                      {.workers = workers}, limit));
    if (static_cast<double>(fitted.resident()) < most.bytes) continue;
    most.bytes = static_cast<double>(fitted.resident());
    most.spilled = static_cast<double>(fitted.spilled());
    most.rank = rank;
    most.plan = choice.spread ? distribute::print(choice.spread->distribution) : std::string();
    most.program = std::make_shared<const program::Program>(std::move(fitted.program));
  }
  return most;
}

Status fit_memory(const Session::State& state, const Context& context, Prepared& prepared, double held) {
  if (!prepared.trains() || prepared.settings.memory_limit <= 0 || prepared.hosts) return {};
  WEFT_TRY(given, recompute_of(prepared.settings));
  MemoryFitter fitter(state, context, prepared, prepared.settings.memory_limit - held);
  WEFT_TRY(kept, fitter.kept_in_memory());
  bool spills = false;
  if (!kept) {
    WEFT_TRY(spilling, fitter.spilling());
    kept = std::move(spilling);
    spills = true;
  }
  prepared.settings.spills = spills;
  if (*kept == given) return {};
  prepared.settings.recompute = *kept;
  WEFT_TRY(made, train::with_recomputation(std::move(prepared.plan), *kept));
  prepared.plan = std::move(made);
  return {};
}

}  // namespace weft::session
