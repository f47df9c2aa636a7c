#include "weft/planner/step/fit_memory.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/pipeline/unroll.h"
#include "weft/planner/search/pipeline/offload.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/plan_step.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/runtime/run/fit_program.h"
#include "weft/runtime/run/local_ranks_run.h"

namespace weft::planner {
namespace {

using train::Recompute;

// Names of REPEAT iterations: "gpt_block.0", "gpt_block.1".
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

// The first rank of each stage. Ranks of a stage are alike, but the last may have less.
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

// The next larger number of bytes that prints exactly with three digits.
double next_printed(double bytes) {
  double unit = 1;
  while (bytes / unit >= 1000) unit *= 1024;
  const double size = bytes / unit, digit = size >= 100 || unit == 1 ? 1 : size >= 10 ? 0.1 : 0.01;
  return std::ceil(unit * digit * (std::floor(size / digit + 1e-9) + 1));
}

// The plan that ranks run with this recomputation.
Result<search::Choice> plan_with(const Knowledge& state, const Observer& context, const Prepared& prepared,
                                 const Recompute& what, std::int64_t micro_batches, bool spills) {
  Prepared trial(prepared.request());
  trial.settings.recompute = what;
  trial.settings.spills = spills;
  trial.settings.prove = false;
  if (micro_batches > 0) trial.settings.micro_batches = micro_batches;
  trial.sizes = prepared.sizes;
  trial.norm_shares = prepared.norm_shares;
  WEFT_TRY(given, recompute_of(prepared.settings));
  if (what == given) {
    trial.plan.graph = prepared.plan.graph.clone();
  } else {
    WEFT_TRY(again, train::recompute(prepared.plan.graph, what));
    trial.plan.graph = std::move(again.graph);
  }
  return plan_to_run(state, prepared.ranks > 1 ? &context : nullptr, trial);
}

// Memory of the fullest rank. `spill_limit`: limit beyond which it spills; 0: no spilling.
Result<RankMemory> memory_of_plan(const Prepared& prepared, const search::Choice& choice,
                                  double spill_limit) {
  const int workers = prepared.ranks > 1 ? workers_of(prepared.settings, prepared.target)
                                         : std::max(prepared.target.threads, 1);
  // Without a limit nothing is spilled. With one, the workers' private memory is counted.
  constexpr double kNoLimit = 1e18;
  const bool here = prepared.target.runs_here();
  const program::CompileOptions compiling = run::rank_compiling(workers, prepared.target.on_gpu());
  const auto limit = static_cast<std::int64_t>(spill_limit > 0 ? spill_limit : here ? kNoLimit : 0);
  RankMemory most;
  for (const std::int32_t rank : ranks_to_look_at(choice)) {
    WEFT_TRY(fitted, choice.spread ? run::fit_for_rank(choice.spread->chosen.plan, rank, compiling, limit,
                                                       prepared.target.gpu)
                                   : run::fit_program(std::make_shared<plan::Graph>(choice.plan.clone()),
                                                      compiling, limit, prepared.target.gpu));
    if (static_cast<double>(fitted.resident()) < most.bytes) continue;
    most.bytes = static_cast<double>(fitted.resident());
    most.spilled = static_cast<double>(fitted.spilled());
    most.rank = rank;
    most.plan = choice.spread ? distribute::print(choice.spread->distribution) : std::string();
    most.program = std::make_shared<const program::Program>(std::move(fitted.program));
  }
  return most;
}

std::string_view spilled_to(const Prepared& prepared) {
  return prepared.target.on_gpu() ? "the host's memory" : "a file";
}

class MemoryFitter {
 public:
  MemoryFitter(const Knowledge& state, const Observer& context, Prepared& prepared, double held)
      : state_(state),
        context_(context),
        prepared_(prepared),
        held_(held),
        limit_(prepared.settings.memory_limit - held) {}

  // The recomputation with the least work that fits without spilling; none if nothing fits.
  Result<std::optional<Recompute>> kept_in_memory() {
    const bool asked = prepared_.settings.recompute.has_value();
    WEFT_TRY(given, recompute_of(prepared_.settings));
    WEFT_TRY(as_given, fits(given));
    if (!as_given && prepared_.ranks > 1 && prepared_.settings.tiles) {
      // Tiles need memory in addition to the whole tensor, so tiling is dropped first.
      const bool asked_for = *prepared_.settings.tiles > 0;
      prepared_.settings.tiles = std::nullopt;
      prepared_.settings.untiled = asked_for;
      WEFT_TRY(whole, fits(given));
      as_given = whole;
    }
    if (as_given) return std::optional(given);
    if (asked || !given.is_nothing()) return std::optional<Recompute>();
    const Recompute selective{.selective = true}, layers{.layers = true};
    WEFT_TRY(first, fits(selective));
    if (first) return std::optional(selective);
    WEFT_TRY(all, fits(layers));
    if (!all) return std::optional<Recompute>();
    // Recompute as few layers as fit, from the first on: their activations are kept longest.
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

  // The recomputation with the least memory if ranks spill.
  Result<Recompute> spilling() {
    const bool asked = prepared_.settings.recompute.has_value();
    WEFT_TRY(given, recompute_of(prepared_.settings));
    // Recomputation needs no file: only what still does not fit is spilled.
    std::vector<Recompute> candidates = {given};
    if (!asked && given.is_nothing()) candidates.insert(candidates.begin(), {.layers = true});
    std::optional<Recompute> best;
    std::optional<search::Choice> best_plan;
    for (const Recompute& what : candidates) {
      WEFT_TRY(plan, plan_with(state_, context_, prepared_, what, 0, /*spills=*/true));
      WEFT_TRY(memory, memory_of_plan(prepared_, plan, limit_));
      if (!best || memory.bytes < least_.bytes) best = what, least_ = memory, best_plan = std::move(plan);
      if (memory.bytes <= limit_) break;
    }
    if (least_.bytes <= limit_) return *best;
    WEFT_TRY(least, least_limit(*best_plan));
    return user_error(
        fmt::format(
            "no plan of {} trains within {} per rank; the smallest needs {}, with {} recomputed and {} in {}",
            prepared_.run->model.text, print_bytes(prepared_.settings.memory_limit), print_bytes(least),
            best->is_nothing() ? "nothing" : train::print(*best), print_bytes(least_.spilled),
            spilled_to(prepared_)),
        prepared_.ranks > 1 ? "a larger limit, a smaller batch or more ranks"
                            : "a larger limit or a smaller batch",
        prepared_.run->span);
  }

 private:
  Result<bool> fits(const Recompute& what) {
    Result<RankMemory> memory = memory_with(state_, context_, prepared_, what, 0, 0);
    if (memory.ok()) return memory->bytes <= limit_;
    // The search reports that nothing fits. Other errors are reported when the plan to run is made.
    if (prepared_.ranks > 1) return false;
    return std::move(memory).error();
  }

  // The least memory_limit, rounded to three digits, that the plan fits. What is spilled depends on
  // the limit, and spilling more can take more memory: pages of the file are resident while in use.
  Result<double> least_limit(const search::Choice& plan) {
    const auto fits_limit = [&](double limit) -> Result<bool> {
      WEFT_TRY(memory, memory_of_plan(prepared_, plan, limit - held_));
      if (memory.bytes > limit - held_) return false;
      least_ = std::move(memory);
      return true;
    };
    double enough = next_printed(least_.bytes + held_);
    for (;; enough = next_printed(enough * 1.1)) {
      WEFT_TRY(fit, fits_limit(enough));
      if (fit) break;
    }
    double few = prepared_.settings.memory_limit;
    while (next_printed(few) < enough) {
      double middle = next_printed((few + enough) / 2);
      if (middle >= enough) middle = next_printed(few);
      WEFT_TRY(fit, fits_limit(middle));
      (fit ? enough : few) = middle;
    }
    return enough;
  }

  const Knowledge& state_;
  const Observer& context_;
  Prepared& prepared_;
  const double held_, limit_;
  RankMemory least_;
};

}  // namespace

Result<RankMemory> memory_with(const Knowledge& state, const Observer& context, const Prepared& prepared,
                               const Recompute& what, std::int64_t micro_batches, double spill_limit) {
  WEFT_TRY(choice, plan_with(state, context, prepared, what, micro_batches, spill_limit > 0));
  return memory_of_plan(prepared, choice, spill_limit);
}

Status fit_memory(const Knowledge& state, const Observer& context, Prepared& prepared, double held) {
  if (!prepared.trains() || prepared.settings.memory_limit <= 0 || prepared.target.is_job()) return {};
  WEFT_TRY(given, recompute_of(prepared.settings));
  MemoryFitter fitter(state, context, prepared, held);
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

std::string print_within_limit(const Prepared& prepared) {
  const Settings& settings = prepared.settings;
  std::vector<std::string> said;
  if (settings.recompute && !settings.recompute->is_nothing())
    said.push_back("recomputed " + train::print(*settings.recompute));
  if (settings.untiled) said.emplace_back("collectives are not tiled: there is no room for the tiles");
  if (settings.spills) said.push_back(fmt::format("spilled tensors are kept in {}", spilled_to(prepared)));
  if (settings.memory_limit <= 0 || said.empty()) return {};
  return fmt::format("within {} per rank: {}", print_bytes(settings.memory_limit), fmt::join(said, ", "));
}

namespace {

double spilled_bytes_of(const program::Program& program, const std::vector<program::Place>& places) {
  double bytes = 0;
  for (const program::Place& place : places) {
    if (!program.buffer(place.buffer).spilled) continue;
    const program::Extent all = extent(place);
    bytes += static_cast<double>(all.end - all.begin);
  }
  return bytes;
}

}  // namespace

double spilling_seconds(const program::Program& program, bool on_gpu) {
  // Released pages are mapped again when a unit touches them. One read fault maps 64 KiB around it,
  // as Linux does by default, but every written page faults by itself. The seconds per fault were
  // measured on a virtual machine whose disk was cached in memory.
  constexpr double kFault = 2.3e-6, kReadAround = 64 << 10, kMappedPage = 4 << 10;
  double seconds = 0;
  for (const program::Unit& unit : program.units) {
    const double read = spilled_bytes_of(program, unit.reads),
                 written = spilled_bytes_of(program, unit.writes);
    // Both directions of the bus at once.
    seconds += on_gpu ? std::max(read, written) / search::kHostLinkBytesPerSecond
                      : (read / kReadAround + written / kMappedPage) * kFault;
  }
  return seconds;
}

}  // namespace weft::planner
