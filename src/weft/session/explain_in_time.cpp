#include "weft/session/explain_in_time.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/cost/mesh_links.h"
#include "weft/cost/plan_cost.h"
#include "weft/distribute/index_roles.h"
#include "weft/explain/in_time.h"
#include "weft/search/distribution/lower_bound.h"
#include "weft/session/plan_for.h"
#include "weft/session/prove_plan.h"
#include "weft/train/local_norms.h"

namespace weft::session {
namespace {

using Clock = std::chrono::steady_clock;

// The one switch: plans in time are for training on clusters, until ranks of this machine run them.
bool has_time(const Prepared& prepared) {
  return prepared.trains() && prepared.ranks > 1 && !cost::is_local(prepared.target);
}

// Where the families of plans without stages need so many times the memory, none of their neighbours fits.
constexpr double kFarTooLarge = 1.5;
// The model at other numbers of rows, each bound once.
class PlansByRows {
 public:
  PlansByRows(const Session::State& state, const Prepared& prepared, std::string batch)
      : state_(state), prepared_(prepared), batch_(std::move(batch)) {}

  Result<const Prepared*> prepared(std::int64_t rows) {
    if (const auto found = made_.find(rows); found != made_.end()) return &found->second;
    const language::SizeOverride size{batch_, rows, {}};
    WEFT_TRY(again, prepare_again(state_, prepared_, {&size, 1}));
    return &made_.emplace(rows, std::move(again)).first->second;
  }

 private:
  const Session::State& state_;
  const Prepared& prepared_;
  std::string batch_;
  std::map<std::int64_t, Prepared> made_;
};

class InTimeExplainer {
 public:
  InTimeExplainer(const Session::State& state, const Context& context, const Prepared& prepared,
                  explain::DistributedExplanation about, const ExplainOptions& options, std::string batch,
                  std::int64_t rows)
      : state_(state),
        context_(context),
        prepared_(prepared),
        options_(options),
        machine_(machine_of(prepared.settings, prepared.target)),
        plans_(state, prepared, batch) {
    explained_.about = std::move(about);
    explained_.batch = batch;
    explained_.rows = rows;
    problem_.plan = &prepared.plan.graph;
    problem_.batch = std::move(batch);
    problem_.rows = rows;
    problem_.plan_of = [this](std::int64_t size) -> Result<const plan::Graph*> {
      WEFT_TRY(found, plans_.prepared(size));
      return &found->plan.graph;
    };
    problem_.cluster = &prepared.target;
    problem_.machine = &machine_;
    problem_.memory_bytes = memory_of_a_rank(prepared.settings, prepared.target);
    problem_.fixed = prepared.fixed;
    problem_.watching = watching_by(context, prepared);
    if (prepared.settings.seconds > 0)
      problem_.until =
          Clock::now() + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(std::min(prepared.settings.seconds, 1e9)));
  }

  Result<std::string> given(const distribute::Distribution& distribution) {
    WEFT_TRY(priced, search::price_given(problem_, distribution));
    explained_.given = true;
    WEFT_TRY_STATUS(look_at_families());
    return say(priced);
  }

  Result<std::optional<std::string>> searched(std::optional<Result<search::Choice>>& untimed) {
    WEFT_TRY_STATUS(look_at_families());
    double smallest = 0;
    for (const search::Alternative& family : explained_.without_stages) {
      if (family.fits) return std::optional<std::string>();
      const double bytes = family.evaluation.peak_bytes;
      smallest = smallest > 0 ? std::min(smallest, bytes) : bytes;
    }
    // Another than these may fit, and is looked for, unless that is out of reach.
    if (smallest <= kFarTooLarge * problem_.memory_bytes) {
      untimed = plan_for(state_, prepared_, /*compare=*/true, &context_, Advice::not_asked);
      if (untimed->ok()) return std::optional<std::string>();
    }
    Result<search::ChosenInTime> found = search::choose_in_time(problem_);
    if (!found.ok()) {
      untimed.reset();  // what does not fit is told once more, with advice
      return std::optional<std::string>();
    }
    WEFT_TRY(text, say(*found));
    return std::optional<std::string>(std::move(text));
  }

 private:
  // What plans in time do not have yet.
  bool needs_program() const {
    return options_.plan || !options_.page.empty() || !options_.chakra.empty() || !options_.timeline.empty();
  }

  Status look_at_families() {
    search::ChooseOptions options;
    options.memory_bytes = problem_.memory_bytes;
    options.fixed = prepared_.fixed;
    options.watching = problem_.watching;
    options.known = state_.known_plans.get();
    options.until = problem_.until;
    WEFT_TRY(families, search::estimate_families(prepared_.plan.graph, prepared_.target, machine_, options));
    explained_.without_stages = std::move(families);
    return {};
  }

  Result<std::string> say(const search::ChosenInTime& choice) {
    if (needs_program())
      return user_error("a plan in stages has no program, page or trace yet",
                        fmt::format("EXPLAIN without them says: {}", print(choice.distribution)));
    explain::DistributedExplanation& about = explained_.about;
    explained_.choice = &choice;
    search::LowerBound bound = search::lower_bound(prepared_.plan.graph, prepared_.target);
    explained_.lower_bound_seconds = bound.seconds;
    explained_.lower_bound_why = std::move(bound.why);
    for (search::Alternative& family : explained_.without_stages)
      family.why_not = search::why_slower(family, choice.priced.seconds, problem_.memory_bytes);
    explained_.batch_norms = train::count_batch_norms(prepared_.plan.graph);
    about.memory_bytes = problem_.memory_bytes;
    about.model_flops = cost::plan_flops(prepared_.plan.graph);
    for (const KeptHint& hint : state_.hints) about.hints.push_back(hint.text);
    about.verbose = options_.verbose;
    about.brief = options_.summary;
    about.width = context_.width;
    WEFT_TRY(proof, prove(choice));
    about.proof = std::move(proof.text);
    about.proven = proof.holds;
    return options_.json ? print_json(explained_) : print_text(explained_);
  }

  // Its two halves: a micro-batch within a stage, and the order of all passes, which is verified when priced.
  Result<Proof> prove(const search::ChosenInTime& choice) {
    const distribute::Distribution& distribution = choice.distribution;
    WEFT_TRY(micro, plans_.prepared(explained_.rows / distribution.micro_batches));
    const distribute::Distribution within = search::on_stage(distribution);
    Proof proof{true, "a stage is one device"};
    if (within.mesh.ranks() > 1) {
      const search::Machine machine = search::within_mesh(machine_, distribution.mesh);
      WEFT_TRY(prices, machine.prices(within.mesh));
      search::Choice spread;
      spread.plan = micro->plan.graph.clone();
      spread.until = problem_.until;
      WEFT_TRY(plan, distribute::distribute(micro->plan.graph, within, {.prices = std::move(prices)}));
      spread.spread.emplace();
      spread.spread->distribution = within;
      spread.spread->chosen.plan = std::move(plan);
      WEFT_TRY(found, require_proof(state_, *micro, micro->plan.graph, spread));
      proof = std::move(found);
    }
    const pipeline::Schedule& schedule = choice.priced.schedule;
    proof.text = fmt::format(
        "a micro-batch: {}\nits schedule: verified, every F, B and W of {} micro-batch{} once on each of {} "
        "stage{}, in order, without deadlock\nnot proven yet: sends between stages and sums over "
        "micro-batches, as "
        "plans in stages do not run on clusters yet",
        proof.text, schedule.micro_batches, schedule.micro_batches == 1 ? "" : "es", schedule.stages,
        schedule.stages == 1 ? "" : "s");
    return proof;
  }

  const Session::State& state_;
  const Context& context_;
  const Prepared& prepared_;
  const ExplainOptions& options_;
  const search::Machine machine_;
  PlansByRows plans_;
  search::InTimeProblem problem_;
  explain::InTimeExplanation explained_;
};

}  // namespace

Result<std::optional<std::string>> explain_in_time(const Session::State& state, const Context& context,
                                                   const Prepared& prepared,
                                                   explain::DistributedExplanation about,
                                                   const ExplainOptions& options,
                                                   std::optional<Result<search::Choice>>& untimed) {
  const std::optional<std::string> nothing;
  if (cost::is_local(prepared.target)) return nothing;
  std::optional<distribute::Distribution> given;
  if (!prepared.settings.distribution.empty()) {
    WEFT_TRY(read, distribute::read_distribution(prepared.settings.distribution));
    if (!distribute::is_in_time(read)) return nothing;
    if (!prepared.trains())
      return user_error(fmt::format("stages and micro-batches are of TRAIN: {}", print(read)),
                        "INFER takes a distribution without them");
    given = std::move(read);
  }
  if (!has_time(prepared)) return nothing;
  const std::vector<std::string> batch = distribute::index_roles(prepared.plan.graph).batch;
  const auto sizes = prepared.named_sizes();
  const auto size = std::ranges::find_if(
      sizes, [&](const auto& one) { return !batch.empty() && one.first == batch.front(); });
  if (size == sizes.end()) {
    if (!given) return nothing;
    return user_error("micro-batches cut the batch, and the model has no index for it",
                      "a name for its size: CREATE MODEL m (b = 64, ..)");
  }
  InTimeExplainer explainer(state, context, prepared, std::move(about), options, size->first, size->second);
  if (!given) return explainer.searched(untimed);
  WEFT_TRY(text, explainer.given(*given));
  return std::optional<std::string>(std::move(text));
}

}  // namespace weft::session
