#include "weft/translate/recipe/improve.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/plan/ops/operators.h"
#include "weft/translate/recipe/known_families.h"

namespace weft::recipe {
namespace {

using Clock = std::chrono::steady_clock;

// A smaller gain is ignored: estimates are not that accurate.
constexpr double kLeastGain = 0.005;

// Those that fit by time, then the others by memory.
bool better_price(const RecipeCost& a, const RecipeCost& b) {
  if (a.fits != b.fits) return a.fits;
  if (!a.fits) return a.peak_bytes < (1 - kLeastGain) * b.peak_bytes;
  return a.seconds < (1 - kLeastGain) * b.seconds;
}

double count_parameters(const plan::Graph& graph) {
  double elements = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (&node.op() == &ops::parameter()) elements += static_cast<double>(node.result_type(0).elements());
  }
  return elements;
}

// The same text for recipes of the same plan (same_plan).
std::string key_of(const Recipe& r) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", r.tensor,
                     r.pipeline, r.context, r.expert, r.expert_tensor == 0 ? r.tensor : r.expert_tensor,
                     r.virtual_stages, r.data_degree(), r.copies, r.micro_batch, r.global_batch, r.sequence,
                     r.sequence_parallel, name(r.recompute), r.recompute_layers,
                     fmt::join(r.stage_layers, ","), r.zero, r.offload_optimizer, r.offload_parameters,
                     r.overlap_reduce, static_cast<int>(r.precision), r.bucket, r.order, r.schedule);
}

class RecipeImprover {
 public:
  RecipeImprover(RecipeEstimator& pricer, const Recipe& today, const ImproveOptions& options)
      : pricer_(pricer), today_(today), options_(options) {}

  Result<Improvement> run() {
    WEFT_TRY(today, pricer_.price(today_));
    made_.today = today;
    today_ = today.recipe;
    consider({std::move(today), {}});
    for (const Recipe& next : neighbours(today_)) {
      if (over()) break;
      consider_recipe(next);
    }
    consider_families();
    climb_from_best();
    if (options_.searches_plans) consider_planned();
    choose();
    made_.looked_at = static_cast<std::int64_t>(priced_.size());
    made_.ended_early = over();
    if (planned_ && planned_->fits && planned_->priced.seconds < (1 - least_gain()) * best_seconds())
      made_.beyond = std::move(planned_);
    else
      made_.beyond_lost.clear();
    return std::move(made_);
  }

 private:
  // A priced recipe, and the changes that led to it.
  struct Candidate {
    EstimatedRecipe reached;
    std::vector<TrailStep> trail;
  };

  double least_gain() const { return std::max(kLeastGain, options_.simpler_within); }
  double best_seconds() const {
    const RecipeCost& price = made_.better ? made_.better->price : made_.today.price;
    return price.fits ? price.seconds : std::numeric_limits<double>::infinity();
  }
  bool over() const {
    const search::PipelineProblem& problem = pricer_.problem();
    return Clock::now() >= problem.until || (problem.watching.interrupted && problem.watching.interrupted());
  }

  void show_progress() {
    constexpr double kFirst = 0.4, kBetween = 0.1;  // seconds
    const auto& show = pricer_.problem().watching.on_progress;
    const double now = std::chrono::duration<double>(Clock::now() - began_).count();
    if (!show || now < kFirst || now - shown_ < kBetween) return;
    shown_ = now;
    show({.looked_at = static_cast<std::int64_t>(priced_.size()), .best_seconds = fastest_, .seconds = now});
  }

  void consider(Candidate one) {
    if (one.reached.price.fits && (fastest_ == 0 || one.reached.price.seconds < fastest_))
      fastest_ = one.reached.price.seconds;
    known_.emplace(key_of(one.reached.recipe), priced_.size());
    priced_.push_back(std::move(one));
    show_progress();
  }

  const Candidate* find(const Recipe& recipe) const {
    const auto same = known_.find(key_of(recipe));
    return same == known_.end() ? nullptr : &priced_[same->second];
  }

  // Prices a recipe if the language can express it and it was not priced before. Returns its
  // candidate; null if it contradicts the model or the cluster.
  const Candidate* consider_recipe(const Recipe& recipe) {
    const std::optional<Recipe> said = as_launched(recipe);
    if (!said) return nullptr;
    if (const Candidate* const known = find(*said)) return known;
    Result<EstimatedRecipe> priced = pricer_.price(*said);
    if (!priced.ok()) return nullptr;
    if (const Candidate* const known = find(priced->recipe)) return known;
    consider({std::move(*priced), {}});
    return &priced_.back();
  }

  // As the language expresses it, with stages of whole layers.
  std::optional<Recipe> as_launched(const Recipe& recipe) const {
    std::optional<Recipe> said = expressible_in(options_.language, recipe, today_);
    if (!said || said->pipeline == 1) return said;
    const auto runs = [&] { return said->pipeline * said->virtual_stages; };
    if (static_cast<std::int64_t>(said->stage_layers.size()) == runs()) return said;
    said->stage_layers.clear();
    while (said->virtual_stages > 1 && pricer_.layers() % runs() != 0) --said->virtual_stages;
    auto layers = launcher_layers(pricer_.layers(), runs());
    if (!layers || (!layers->empty() && options_.language != Language::megatron)) return std::nullopt;
    said->stage_layers = *std::move(layers);
    return said;
  }

  void consider_families() {
    const search::PipelineProblem& problem = pricer_.problem();
    const distribute::IndexRoles& roles = pricer_.roles();
    FamilySpace space;
    space.like = today_;
    space.per_node = problem.cluster->axes.back().size;
    space.layers = pricer_.layers();
    space.experts = roles.expert.empty() ? 0 : expert_count();
    space.slices_model = !roles.model.empty();
    space.parameters = count_parameters(*problem.plan);
    space.memory_bytes = problem.memory_bytes;
    // Where full recomputation does not fit, larger micro-batches do not fit either.
    std::set<std::string> too_large;
    const auto shape = [](Recipe recipe) {
      recipe.recompute = Recompute::none;
      recipe.micro_batch = 0;
      return fmt::format("{}, {}", describe(recipe), recipe.expert_tensor);
    };
    for (const RecomputeLadder& ladder : known_families(space)) {
      const std::string key = shape(ladder.front());
      if (too_large.contains(key)) continue;
      if (over()) {
        ++made_.families_left;
        continue;
      }
      bool priced = false, fits = false;
      for (const Recipe& recipe : ladder) {
        const Candidate* const one = consider_recipe(recipe);
        if (one == nullptr) continue;
        priced = true;
        if ((fits = one->reached.price.fits)) break;
      }
      made_.families += priced ? 1 : 0;
      if (priced && !fits) too_large.insert(key);
    }
  }

  std::int64_t expert_count() const {
    const plan::Graph& graph = *pricer_.problem().plan;
    for (std::size_t n = 0; n < graph.node_count(); ++n) {
      const plan::NodeView node = graph.view(plan::NodeId(n));
      if (&node.op() != &ops::parameter()) continue;
      for (const plan::Dim& dim : node.result_type(0).dims)
        if (graph.text(dim.index) == pricer_.roles().expert.front()) return dim.size;
    }
    return 0;
  }

  // The best recipes with different degrees, best first. The starts do not depend on today's
  // recipe, unless that is better than all known families.
  std::vector<Candidate> starts() const {
    std::vector<const Candidate*> order;
    for (const Candidate& one : priced_) order.push_back(&one);
    std::ranges::stable_sort(order, [](const Candidate* a, const Candidate* b) {
      const RecipeCost &x = a->reached.price, &y = b->reached.price;
      if (x.fits != y.fits) return x.fits;
      return x.fits ? x.seconds < y.seconds : x.peak_bytes < y.peak_bytes;
    });
    std::vector<Candidate> made;
    std::set<std::pair<std::int64_t, std::int64_t>> degrees;
    for (const Candidate* const one : order)
      if (made.size() < options_.climbs &&
          degrees.emplace(one->reached.recipe.tensor, one->reached.recipe.pipeline).second)
        made.push_back(*one);
    return made;
  }

  void climb_from_best() {
    for (Candidate& start : starts()) climb(std::move(start));
  }

  void climb(Candidate from) {
    while (!over() && climbed_ < options_.max_estimates) {
      const RecipeCost* best = &from.reached.price;
      std::optional<Candidate> next;
      for (const Recipe& changed : neighbours(from.reached.recipe)) {
        if (over()) break;
        const std::size_t before = priced_.size();
        const Candidate* const one = consider_recipe(changed);
        climbed_ += static_cast<std::int64_t>(priced_.size() - before);
        if (one == nullptr || !better_price(one->reached.price, *best)) continue;
        next = *one;
        best = &next->reached.price;
      }
      if (!next) return;
      next->trail = from.trail;
      if (next->trail.empty() && !same_plan(from.reached.recipe, today_))
        next->trail.push_back({changes(today_, from.reached.recipe), made_.today.price, from.reached.price});
      next->trail.push_back(
          {changes(from.reached.recipe, next->reached.recipe), from.reached.price, next->reached.price});
      from = *next;
      keep_trail(from);
    }
  }

  void keep_trail(const Candidate& one) { priced_[known_.at(key_of(one.reached.recipe))].trail = one.trail; }

  // The planner's own search, with the time that is left. It is given a part of that, since its last
  // estimates may take longer than its limit.
  void consider_planned() {
    if (over()) return;
    search::PipelineProblem problem = pricer_.problem();
    if (problem.until != Clock::time_point::max()) {
      constexpr double kShare = 0.5;
      const auto left = problem.until - Clock::now();
      problem.until = Clock::now() + std::chrono::duration_cast<Clock::duration>(kShare * left);
    }
    Result<search::ChosenPipeline> chosen = search::choose_pipeline(problem);
    if (!chosen.ok()) return;
    planned_ = static_cast<const search::PipelinePlan&>(*chosen);
    const GatheredRecipe gathered = gather(chosen->distribution, pricer_.roles(), today_);
    made_.beyond_lost = gathered.lost;
    const std::optional<Recipe> said = expressible_in(options_.language, gathered.recipe, today_);
    if (said)
      for (const Change& change : changes(gathered.recipe, *said))
        if (change.what == "schedule" || change.what == "recomputation")
          made_.beyond_lost.push_back(
              fmt::format("{} {}: replaced by {}", change.what, change.from, change.to));
    if (!said)
      for (const Change& change : changes(today_, gathered.recipe))
        if (change.what != "tensor" && change.what != "data" && change.what != "micro-batch")
          made_.beyond_lost.push_back(
              fmt::format("{} {}, which the program sets to {}", change.what, change.to, change.from));
    const std::int64_t runs = gathered.recipe.pipeline * gathered.recipe.virtual_stages;
    const bool has_layout =
        options_.language == Language::megatron && launcher_layers(pricer_.layers(), runs);
    if (pricer_.layers() % runs != 0 && !has_layout)
      made_.beyond_lost.push_back(
          fmt::format("unequal stages: {} layers in {} virtual stages", pricer_.layers(), runs));
    for (const search::PipelinePlan* const plan :
         {static_cast<const search::PipelinePlan*>(&*chosen),
          chosen->megatron ? &*chosen->megatron : static_cast<const search::PipelinePlan*>(nullptr)}) {
      if (plan == nullptr || over()) continue;
      const Candidate* const one =
          consider_recipe(gather(plan->distribution, pricer_.roles(), today_).recipe);
      if (one != nullptr && one->reached.price.fits && one->reached.price.seconds <= fastest_) climb(*one);
    }
  }

  // The simplest recipe among those that are about as fast as the fastest; ties by time, then by
  // text.
  void choose() {
    const Candidate* fastest = nullptr;
    for (const Candidate& one : priced_)
      if (one.reached.price.fits &&
          (fastest == nullptr || one.reached.price.seconds < fastest->reached.price.seconds))
        fastest = &one;
    if (fastest == nullptr) return;
    const double enough = (1 + options_.simpler_within) * fastest->reached.price.seconds;
    const Candidate* best = fastest;
    const auto rank = [](const Candidate& one) {
      return std::tuple(complexity(one.reached.recipe), one.reached.price.seconds,
                        describe(one.reached.recipe));
    };
    for (const Candidate& one : priced_)
      if (one.reached.price.fits && one.reached.price.seconds <= enough && rank(one) < rank(*best))
        best = &one;
    made_.simpler_within = options_.simpler_within;
    const EstimatedRecipe& today = made_.today;
    const bool better = better_price(best->reached.price, today.price);
    const EstimatedRecipe& answer = better ? best->reached : today;
    if (fastest->reached.price.seconds < (1 - kLeastGain) * answer.price.seconds)
      made_.fastest = fastest->reached;
    if (!better) return;
    made_.better = best->reached;
    if (const auto& trail = best->trail; !trail.empty()) {
      made_.trail = trail;
    } else {
      made_.trail = {{changes(today.recipe, best->reached.recipe), today.price, best->reached.price}};
    }
    made_.trail.front().before = today.price;
  }

  RecipeEstimator& pricer_;
  Recipe today_;
  const ImproveOptions options_;
  const Clock::time_point began_ = Clock::now();
  double shown_ = 0;
  std::int64_t climbed_ = 0;
  double fastest_ = 0;                        // seconds of the fastest that fits; 0: none yet
  std::map<std::string, std::size_t> known_;  // by key: in priced_
  std::deque<Candidate> priced_;              // grows without moving candidates
  std::optional<search::PipelinePlan> planned_;
  Improvement made_;
};

}  // namespace

Result<Improvement> improve(RecipeEstimator& pricer, const Recipe& today, const ImproveOptions& options) {
  return RecipeImprover(pricer, today, options).run();
}

}  // namespace weft::recipe
