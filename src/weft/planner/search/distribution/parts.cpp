#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/parallel/train/chain.h"
#include "weft/planner/search/distribution/cheapest_choices.h"
#include "weft/planner/search/distribution/distribution_search.h"
#include "weft/planner/search/distribution/part_variants.h"

namespace weft::search {
namespace {

using distribute::Distribution;

constexpr std::size_t kBases = 2;         // results of the descent to improve, on different meshes
constexpr double kNearBest = 1.05;        // a base that is slower than this would not become the best
constexpr std::size_t kMostKinds = 128;   // of parts
constexpr std::int64_t kWholePlans = 12;  // whole plans estimated at the end
constexpr double kNoPrice = std::numeric_limits<double>::infinity();

// How an estimate of a part becomes a single number. A part alone hides less of its communication
// than in the whole plan, by an unknown amount, so both extremes are tried. For plans that are too
// large, memory gets a weight too.
struct Weights {
  double seconds = 0, compute = 0, communication = 0, bytes = 0;

  double of(const Evaluation& evaluation) const {
    return seconds * evaluation.seconds + compute * evaluation.compute_seconds +
           communication * evaluation.communication_seconds + bytes * evaluation.peak_bytes;
  }
};

// One base: the variants of each kind of part, their costs alone and in pairs, and the best
// choices.
class Improving {
 public:
  Improving(const DistributionSpace& space, const Evaluator& evaluator, const train::Chain& chain,
            const Distribution& base)
      : evaluator_(evaluator),
        chain_(chain),
        base_(base),
        variants_(evaluator.graph(), chain, base_, lists_on(space, base_.mesh)) {
    for (const train::Stretch& stretch : chain.stretches) {
      // The second of several repeated layers represents all, since the inputs of the first may
      // differ.
      const std::size_t from = stretch.first + (stretch.times > 1 ? stretch.length : 0);
      for (std::size_t k = 0; k < stretch.length; ++k) steps_.push_back({from + k, {}, {}});
    }
  }

  // Evaluates about `pairs` pairs of neighbours. False if there is nothing to choose.
  bool measure(double pairs) {
    if (!measure_alone(pairs)) return false;
    measure_pairs();
    return true;
  }

  Distribution with_cheapest_choices(const Weights& weights) const {
    const std::vector<std::size_t> choices = cheapest_choices(costs(weights));
    Distribution made = base_;
    for (std::size_t s = 0; s < steps_.size(); ++s)
      std::ranges::move(variants_.in_kind(chain_.parts[steps_[s].part].kind, steps_[s].variants[choices[s]]),
                        std::back_inserter(made.exceptions));
    return made;
  }

  std::int64_t estimates() const { return estimates_; }

 private:
  using Costs = std::vector<std::optional<Evaluation>>;  // nothing: not possible
  struct Step {
    std::size_t part;
    std::vector<Variant> variants;  // the base comes first
    Costs alone;
  };
  using Table = std::vector<Costs>;  // by the choices of two neighbours

  static std::vector<std::vector<IndexNames>> lists_on(const DistributionSpace& space,
                                                       const plan::Mesh& mesh) {
    std::vector<std::vector<IndexNames>> lists;
    for (const plan::MeshAxis& axis : mesh.axes) lists.push_back(space.lists_for(axis.name));
    return lists;
  }

  Costs ask(std::span<const Evaluator::PartQuestion> questions) {
    estimates_ += static_cast<std::int64_t>(questions.size());
    Costs costs;
    for (const Result<Evaluation>& answer : evaluator_.estimate_parts(questions))
      costs.push_back(answer.ok() ? std::optional(*answer) : std::nullopt);
    return costs;
  }

  bool measure_alone(double pairs) {
    bool choice = false;
    // The more steps, the fewer variants of each.
    const auto most =
        static_cast<std::size_t>(std::clamp(std::sqrt(pairs / static_cast<double>(steps_.size())), 2.0, 5.0));
    for (Step& step : steps_) {
      const train::Part& part = chain_.parts[step.part];
      step.variants = variants_.of(part);
      const Result<plan::Graph> plan = train::extract(evaluator_.graph(), chain_, step.part, 1);
      if (!plan.ok()) return false;
      const Distribution base = restricted(base_, *plan);
      std::vector<Evaluator::PartQuestion> questions;
      for (const Variant& variant : step.variants) {
        questions.push_back({&*plan, base});
        std::ranges::move(variants_.in_part(part, variant),
                          std::back_inserter(questions.back().distribution.exceptions));
      }
      step.alone = ask(questions);
      keep_best(step, most);
      choice = choice || step.variants.size() > 1;
    }
    return choice;
  }

  // Keeps the base and the fastest of the others.
  static void keep_best(Step& step, std::size_t most) {
    std::vector<std::size_t> order;
    for (std::size_t v = 1; v < step.variants.size(); ++v)
      if (step.alone[v]) order.push_back(v);
    std::ranges::stable_sort(order, {}, [&](std::size_t v) { return step.alone[v]->seconds; });
    if (order.size() >= most) order.resize(most - 1);
    order.insert(order.begin(), 0);
    Step kept{step.part, {}, {}};
    for (const std::size_t v : order) {
      kept.variants.push_back(std::move(step.variants[v]));
      kept.alone.push_back(std::move(step.alone[v]));
    }
    step = std::move(kept);
  }

  void measure_pairs() {
    std::size_t step = 0;
    for (const train::Stretch& stretch : chain_.stretches) {
      const std::size_t first = step, last = step + stretch.length - 1;
      for (; step <= last; ++step) {
        if (step + 1 == steps_.size()) break;
        joins_.push_back(pairs(step, step + 1, step < last ? steps_[step].part : stretch.end() - 1));
      }
      step = last + 1;
      back_.push_back(stretch.times > 1 ? pairs(last, first, stretch.first + stretch.length - 1) : Table());
    }
  }

  // Costs of two neighbours together. Part `at` has the kind of step `from`, the next part that of
  // `to`.
  Table pairs(std::size_t from, std::size_t to, std::size_t at) {
    const Step &a = steps_[from], &b = steps_[to];
    Table table(a.variants.size(), Costs(b.variants.size()));
    const Result<plan::Graph> plan = train::extract(evaluator_.graph(), chain_, at, 2);
    if (!plan.ok()) return table;
    const Distribution base = restricted(base_, *plan);
    std::vector<Evaluator::PartQuestion> questions;
    const auto say = [&](const train::Part& part, const Variant& variant) {
      std::ranges::move(variants_.in_part(part, variant),
                        std::back_inserter(questions.back().distribution.exceptions));
    };
    for (const Variant& before : a.variants)
      for (const Variant& after : b.variants) {
        questions.push_back({&*plan, base});
        say(chain_.parts[at], before);
        say(chain_.parts[at + 1], after);
      }
    Costs costs = ask(questions);
    for (std::size_t v = 0; v < a.variants.size(); ++v)
      for (std::size_t w = 0; w < b.variants.size(); ++w)
        table[v][w] = std::move(costs[v * b.variants.size() + w]);
    return table;
  }

  // Cost of two neighbours beyond that of each alone: layout conversions, minus what overlaps.
  std::vector<std::vector<double>> joined(const Table& table, std::size_t from, std::size_t to,
                                          const Weights& weights) const {
    std::vector<std::vector<double>> extra(table.size());
    for (std::size_t v = 0; v < table.size(); ++v)
      for (std::size_t w = 0; w < table[v].size(); ++w) {
        const auto &a = steps_[from].alone[v], &b = steps_[to].alone[w], &both = table[v][w];
        extra[v].push_back(a && b && both ? weights.of(*both) - weights.of(*a) - weights.of(*b) : kNoPrice);
      }
    return extra;
  }

  ChainCosts costs(const Weights& weights) const {
    ChainCosts made;
    for (const Step& step : steps_) {
      std::vector<double>& nodes = made.nodes.emplace_back();
      for (const auto& alone : step.alone) nodes.push_back(alone ? weights.of(*alone) : kNoPrice);
    }
    for (std::size_t s = 0; s < joins_.size(); ++s)
      made.joins.push_back(joined(joins_[s], s, s + 1, weights));
    std::size_t step = 0;
    for (std::size_t r = 0; r < chain_.stretches.size(); ++r) {
      const train::Stretch& stretch = chain_.stretches[r];
      made.stretches.push_back({stretch.length, stretch.times});
      made.back.push_back(joined(back_[r], step + stretch.length - 1, step, weights));
      step += stretch.length;
    }
    return made;
  }

  const Evaluator& evaluator_;
  const train::Chain& chain_;
  const Distribution base_;
  PartVariants variants_;
  std::vector<Step> steps_;
  std::vector<Table> joins_, back_;  // by step; by stretch
  std::int64_t estimates_ = 0;
};

std::string what_it_won(const Score& before, const Score& after) {
  if (!(after < before)) return "nothing better than the listed plans";
  if (!before.fits)
    return after.fits ? "a plan that fits, unlike any listed plan" : "smaller than any listed plan";
  return fmt::format("{:.1f} % faster than any listed plan", 100 * (1 - after.seconds / before.seconds));
}

class ByParts final : public DistributionStrategy {
 public:
  SearchOutcome search(const DistributionSpace& space, Evaluator& evaluator,
                       const DistributionBudget& budget) const override {
    DistributionBudget first = budget;
    first.estimates -= std::min(kWholePlans, budget.estimates / 8);
    SearchOutcome outcome = descend().search(space, evaluator, first);
    if (outcome.best.empty() || evaluator.watch().over()) return outcome;
    if (space.fixes_degrees()) {
      outcome.parts = "not planned part by part: hints fix degrees of parallelism";
      return outcome;
    }
    const train::Chain chain = train::chain_of(evaluator.graph());
    if (!chain.why_not.empty() || chain.kinds > kMostKinds) {
      outcome.parts = "not planned part by part: " +
                      (chain.why_not.empty() ? fmt::format("{} kinds of parts", chain.kinds) : chain.why_not);
      return outcome;
    }
    std::vector<Distribution> bases;
    const Score& best = outcome.best.front().score;
    for (const Found& found : outcome.best)
      if (bases.size() < kBases && found.score.fits == best.fits &&
          found.score.seconds <= kNearBest * best.seconds &&
          std::ranges::find(bases, found.distribution.mesh, &Distribution::mesh) == bases.end())
        bases.push_back(found.distribution);
    const Score before = outcome.best.front().score;
    std::int64_t estimates = 0;
    for (const Distribution& base : bases)
      if (!evaluator.watch().over()) estimates += improve(space, evaluator, budget, chain, base, outcome);
    outcome.close(evaluator);
    const Score after = outcome.best.front().score;
    outcome.parts = fmt::format("{} parts of {} kinds, {} estimates of parts: {}", chain.parts.size(),
                                chain.kinds, estimates, what_it_won(before, after));
    return outcome;
  }

 private:
  static std::int64_t improve(const DistributionSpace& space, Evaluator& evaluator,
                              const DistributionBudget& budget, const train::Chain& chain,
                              const Distribution& base, SearchOutcome& outcome) {
    Improving parts(space, evaluator, chain, base);
    // Limits the cost: pairs of large parts cost as much as whole plans.
    constexpr double kMostPairs = 800, kMostWholePlans = 20;
    const double in_whole_plans =
        kMostWholePlans * evaluator.looked_at() * static_cast<double>(chain.parts.size()) / 2;
    if (!parts.measure(std::min({kMostPairs, in_whole_plans, 2.0 * static_cast<double>(budget.estimates)})))
      return parts.estimates();
    const Result<Evaluation> whole = evaluator.estimate(base);
    const double a_byte =
        whole.ok() && whole->peak_bytes > 0 ? whole->seconds / whole->peak_bytes : 0;  // seconds per byte
    for (const Weights& weights :
         {Weights{.seconds = 1}, Weights{.seconds = 1, .bytes = a_byte / 2},
          Weights{.seconds = 1, .bytes = a_byte * 2}, Weights{.compute = 1, .communication = 0.25},
          Weights{.compute = 1, .communication = 1}}) {
      Distribution way = parts.with_cheapest_choices(weights);
      if (evaluator.estimates() >= budget.estimates && !evaluator.knows(way)) break;
      if (const Result<Evaluation> evaluation = evaluator.estimate(way); evaluation.ok())
        outcome.add(Found(std::move(way), *evaluation, budget.memory_bytes));
      else if (!outcome.failure)
        outcome.failure = evaluation.error();
    }
    return parts.estimates();
  }
};

}  // namespace

const DistributionStrategy& by_parts() {
  static const ByParts strategy;
  return strategy;
}

}  // namespace weft::search
