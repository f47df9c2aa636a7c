#include "weft/planner/search/distribution/choose_distribution.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/plan/cluster/digest.h"
#include "weft/plan/graph/text.h"
#include "weft/planner/search/distribution/known_plans.h"
#include "weft/planner/search/distribution/lower_bound.h"

namespace weft::search {
namespace {

using distribute::Distribution;

double largest(const sim::MemoryByKind& memory, std::string_view& what) {
  const auto kinds = memory.kinds();
  const auto most = std::ranges::max_element(kinds, {}, [](const auto& kind) { return kind.second; });
  what = most->first == "optimizer" ? "optimizer states" : most->first;
  return most->second;
}

std::string why_not(const Evaluation& other, bool fits, const Evaluation& chosen, double limit) {
  if (!fits) {
    std::string_view what;
    const double bytes = largest(other.memory, what);
    return fmt::format("does not fit: {} per rank, of which {} {}; {} available",
                       print_bytes(other.peak_bytes), print_bytes(bytes), what, print_bytes(limit));
  }
  const double slower = other.seconds - chosen.seconds;
  // Only a plan given by the user, constrained by hints or preferred for its simplicity can be
  // slower than another.
  if (slower < 0) return fmt::format("{:.2f}x faster than the chosen plan", chosen.seconds / other.seconds);
  if (slower == 0) return "as fast";
  const double exposed = other.exposed_communication_seconds - chosen.exposed_communication_seconds,
               compute = other.compute_seconds - chosen.compute_seconds;
  const std::string ratio = fmt::format("{:.2f}x slower", other.seconds / chosen.seconds);
  if (exposed >= compute && exposed > 0)
    return fmt::format("{}: {} more exposed communication", ratio, print_seconds(exposed));
  if (compute > 0) return fmt::format("{}: {} more computation per rank", ratio, print_seconds(compute));
  return ratio;
}

constexpr const char* kEstimated = "; estimated, without rewrites, buckets and tiles";

class Chooser {
 public:
  Chooser(const plan::Graph& graph, const cluster::Cluster& cluster, const Machine& machine,
          const ChooseOptions& options)
      : graph_(graph),
        cluster_(cluster),
        options_(options),
        evaluator_(graph, machine, options.known, watching_of(options), options.asked),
        roles_(distribute::index_roles(graph)),
        limit_(options.memory_bytes > 0 ? options.memory_bytes : std::numeric_limits<double>::infinity()) {}

  // Reuses the result of an earlier search. Only the plan itself is made again.
  Result<DistributionChoice> take_known(const ChosenDistribution& known) {
    WEFT_TRY(predicted, evaluator_.predict(known.distribution));
    static_cast<ChosenDistribution&>(choice_) = known;
    choice_.chosen = std::move(predicted);
    choice_.from_plan_cache = true;
    choice_.layers = evaluator_.folded_layers() > 0 ? evaluator_.layers() : 0;
    choice_.folded = evaluator_.folded_layers();
    choice_.search_seconds = since_start();
    return std::move(choice_);
  }

  Result<DistributionChoice> run() {
    WEFT_TRY(space, DistributionSpace::make(cluster_, roles_, options_.fixed));
    LowerBound bound = lower_bound(graph_, cluster_, options_.devices_per_rank);
    evaluator_.watch().expect(bound.seconds);
    WEFT_TRY_STATUS(options_.given ? take_given() : take_best(space));
    choice_.search_seconds = since_start();
    choice_.lower_bound_seconds = bound.seconds;
    choice_.lower_bound_why = std::move(bound.why);
    if (options_.alternatives) {
      add_families(space);
      for (Alternative& family : choice_.alternatives) take_if_better(family);
      for (Alternative& family : choice_.alternatives) compare(family);
    }
    return std::move(choice_);
  }

  enum class Beside : std::uint8_t { nothing, best };
  Result<std::vector<Alternative>> families(Beside beside) {
    WEFT_TRY(space, DistributionSpace::make(cluster_, roles_, options_.fixed));
    if (beside == Beside::best) {
      const SearchOutcome found = searched(space);
      if (!found.best.empty() && found.best.front().score.fits)
        choice_.alternatives.push_back({"without stages",
                                        found.best.front().distribution,
                                        found.best.front().evaluation,
                                        /*fits=*/true,
                                        {}});
    }
    add_families(space);
    return std::move(choice_.alternatives);
  }

 private:
  static Watching watching_of(const ChooseOptions& options) {
    Watching watching = options.watching;
    watching.seconds = options.budget.seconds;
    if (options.until != std::chrono::steady_clock::time_point::max())
      watching.seconds =
          std::min(watching.seconds,
                   std::chrono::duration<double>(options.until - std::chrono::steady_clock::now()).count());
    return watching;
  }

  double since_start() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

  Score score_of(const sim::Prediction& prediction) const {
    return {prediction.peak_bytes <= limit_, prediction.seconds, prediction.peak_bytes};
  }

  Status take_given() {
    WEFT_TRY(predicted, evaluator_.predict(*options_.given));
    choice_.distribution = *options_.given;
    choice_.chosen = std::move(predicted);
    choice_.fits = choice_.chosen.prediction.peak_bytes <= limit_;
    return {};
  }

  SearchOutcome searched(const DistributionSpace& space) {
    DistributionBudget budget = options_.budget;
    budget.memory_bytes = limit_;
    const DistributionStrategy& strategy = options_.strategy != nullptr ? *options_.strategy : by_parts();
    return strategy.search(space, evaluator_, budget);
  }

  Status take_best(const DistributionSpace& space) {
    choice_.outcome = searched(space);
    if (choice_.outcome.best.empty() && choice_.outcome.ended == Ended::interrupted)
      return user_error("interrupted", "no plan had been found");
    if (choice_.outcome.best.empty() && !choice_.outcome.failure && !options_.fixed.degrees.empty())
      return user_error(
          fmt::format("no distribution over {} keeps HINT {}", cluster_.name, print(options_.fixed.degrees)),
          "other degrees, or a distribution in full: SET distribution = '..'");
    if (choice_.outcome.best.empty())
      return choice_.outcome.failure
                 ? *choice_.outcome.failure
                 : user_error("the search tried no distribution", "raise the limit of estimates");
    WEFT_TRY_STATUS(take_finalist());
    choice_.fits = score_of(choice_.chosen.prediction).fits;
    if (!choice_.fits) return fits_nowhere();
    return {};
  }

  // With memory packed, a plan takes up to a few percent longer than estimated, since values that
  // share memory wait for one another. Similar plans wait similarly, so the best of each mesh is
  // refined.
  std::vector<Found> finalists() const {
    // After an interrupt, only the plan itself is made.
    if (evaluator_.watch().over()) return choice_.outcome.best;
    constexpr double kNear = 1.06;
    constexpr std::size_t kMost = 3;
    const std::vector<Found>& best = choice_.outcome.best;
    std::vector<Distribution> near;
    for (const Found& found : best)
      if (near.size() < kMost && found.score.fits == best.front().score.fits &&
          found.score.seconds <= best.front().score.seconds * kNear &&
          std::ranges::find(near, found.distribution.mesh, &Distribution::mesh) == near.end())
        near.push_back(found.distribution);
    // A spare, in case these turn out not to fit.
    if (near.size() < 2 && best.size() > 1) near.push_back(best[1].distribution);
    const std::vector<Result<Evaluation>> refined = evaluator_.refine(near);
    std::vector<Found> made;
    for (std::size_t f = 0; f < near.size(); ++f)
      if (refined[f].ok()) made.emplace_back(near[f], *refined[f], limit_);
    std::ranges::stable_sort(made, [](const Found& a, const Found& b) { return a.score < b.score; });
    return made;
  }

  // The first that fits when all kinds of ranks are predicted, or the smallest.
  Status take_finalist() {
    std::optional<Score> best;
    for (const Found& found : finalists()) {
      if (best && (best->fits || !found.score.fits)) break;
      Result<PredictedPlan> predicted = evaluator_.predict(found.distribution);
      if (!predicted.ok()) continue;
      const Score score = score_of(predicted->prediction);
      if (best && !(score < *best)) continue;
      best = score;
      choice_.distribution = found.distribution;
      choice_.chosen = std::move(*predicted);
    }
    if (!best) return user_error("none of the distributions found could be predicted for all layers");
    return {};
  }

  Error fits_nowhere() const {
    const sim::Prediction& smallest = choice_.chosen.prediction;
    std::string_view what;
    const double bytes = largest(smallest.memory, what);
    std::string advice;
    if (evaluator_.watch().over())
      advice = fmt::format("another plan may fit: the search stopped for {}", name(choice_.outcome.ended));
    else if (options_.advise)
      advice = options_.advise({smallest.peak_bytes, limit_, what == "activations" || what == "scratch"});
    return user_error(
        fmt::format("no plan fits in {} per rank; the smallest found needs {}, of which {} is {} ({})",
                    print_bytes(limit_), print_bytes(smallest.peak_bytes), print_bytes(bytes), what,
                    print(choice_.distribution)),
        std::move(advice));
  }

  void estimate_at_once(const std::vector<std::vector<Distribution>>& families) {
    std::vector<const Distribution*> members;
    for (const std::vector<Distribution>& family : families)
      for (const Distribution& member : family) members.push_back(&member);
    evaluator_.estimate_all(members);
  }

  void add_families(const DistributionSpace& space) {
    estimate_at_once({space.data_parallel(), space.megatron(), space.zero_3()});
    add_family("data parallel", space.data_parallel());
    add_family("Megatron", space.megatron());
    add_family("ZeRO-3", space.zero_3());
  }

  void add_family(std::string name, std::vector<Distribution> members) {
    std::optional<Found> best;
    for (Distribution& member : members) {
      const Result<Evaluation> evaluation = evaluator_.estimate(member);
      if (!evaluation.ok()) continue;
      Found found(std::move(member), *evaluation, limit_);
      if (!best || found.score < best->score) best = std::move(found);
    }
    if (best)
      choice_.alternatives.push_back(
          {std::move(name), std::move(best->distribution), best->evaluation, best->score.fits, ""});
  }

  // If an estimate beats the choice, predicts it with all layers. Families ignore hints, and a
  // given distribution is never replaced.
  void take_if_better(Alternative& family) {
    if (options_.given || family.distribution == choice_.distribution || evaluator_.watch().over()) return;
    if (!family.fits || family.evaluation.seconds >= choice_.chosen.prediction.seconds) return;
    Result<PredictedPlan> whole = evaluator_.predict(family.distribution);
    if (!whole.ok()) return;
    family.evaluation = whole->evaluation();
    const Score score = score_of(whole->prediction);
    family.fits = score.fits;
    const bool free = options_.fixed.empty();
    if (!free || !(score < score_of(choice_.chosen.prediction))) return;
    choice_.distribution = family.distribution;
    choice_.chosen = std::move(*whole);
  }

  void compare(Alternative& family) const {
    const Evaluation ours = choice_.chosen.evaluation();
    const bool chosen = family.distribution == choice_.distribution;
    if (chosen) family.evaluation = ours;
    family.why_not =
        chosen ? "this is the chosen plan" : why_not(family.evaluation, family.fits, ours, limit_);
  }

  const plan::Graph& graph_;
  const cluster::Cluster& cluster_;
  const ChooseOptions& options_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Evaluator evaluator_;
  distribute::IndexRoles roles_;
  double limit_;
  DistributionChoice choice_;
};

// Everything that a choice depends on. Labels, names and the order of nodes matter too, so the text
// of the plan is hashed.
Digest key_of(const plan::Graph& graph, const cluster::Cluster& cluster, const Machine& machine,
              const ChooseOptions& options) {
  Hasher hasher;
  hasher.text(plan::print(graph));
  hasher.digest_of(cluster::digest_of(cluster)).digest_of(machine.digest);
  hasher.real(options.memory_bytes).number(static_cast<std::uint64_t>(options.devices_per_rank));
  hasher.number(static_cast<std::uint64_t>(options.budget.estimates)).real(options.budget.seconds);
  // A strategy is a single static object, identified by its address.
  hasher.number(reinterpret_cast<std::uintptr_t>(options.strategy));
  for (const FixedPart::Slice& slice : options.fixed.slices) hasher.text(slice.index).text(slice.axis);
  hasher.number(options.fixed.slices.size()).text(print(options.fixed.degrees));
  hasher.number(static_cast<std::uint64_t>(options.asked.sync_every))
      .number(static_cast<std::uint64_t>(options.asked.delay))
      .number(static_cast<std::uint64_t>(options.asked.servers))
      .real(options.asked.credit);
  for (const distribute::Exception& exception : options.fixed.exceptions)
    hasher.text(exception.tensor).text(exception.axis).text(exception.index);
  return hasher.digest();
}

}  // namespace

Result<std::vector<Alternative>> estimate_families(const plan::Graph& graph, const cluster::Cluster& cluster,
                                                   const Machine& machine, const ChooseOptions& options) {
  return Chooser(graph, cluster, machine, options).families(Chooser::Beside::nothing);
}

Result<std::vector<Alternative>> estimate_best(const plan::Graph& graph, const cluster::Cluster& cluster,
                                               const Machine& machine, const ChooseOptions& options) {
  return Chooser(graph, cluster, machine, options).families(Chooser::Beside::best);
}

std::string why_not_chosen(const Alternative& other, const Evaluation& chosen, double limit) {
  const std::string why = why_not(other.evaluation, other.fits, chosen, limit);
  return other.estimated ? why + kEstimated : why;
}

std::string why_slower(const Alternative& other, double seconds, double limit) {
  const double times = other.evaluation.seconds / seconds;
  const std::string why = !other.fits ? why_not(other.evaluation, false, other.evaluation, limit)
                          : times < 1 ? fmt::format("{:.2f}x faster", 1 / times)
                                      : fmt::format("{:.2f}x slower", times);
  return other.estimated ? why + kEstimated : why;
}

Result<DistributionChoice> choose_distribution(const plan::Graph& graph, const cluster::Cluster& cluster,
                                               const Machine& machine, const ChooseOptions& options) {
  Chooser chooser(graph, cluster, machine, options);
  if (options.known == nullptr || machine.digest == Digest() || options.given) return chooser.run();
  const Digest key = key_of(graph, cluster, machine, options);
  const auto known = options.known->find_choice(key);
  // TRAIN can reuse the choice of an EXPLAIN. The reverse would lack alternatives.
  if (known != nullptr && (!options.alternatives || !known->alternatives.empty()))
    return chooser.take_known(*known);
  WEFT_TRY(choice, chooser.run());
  if (choice.outcome.ended != Ended::interrupted) options.known->keep_choice(key, choice);
  return choice;
}

}  // namespace weft::search
