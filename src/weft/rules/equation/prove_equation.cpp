#include "weft/rules/equation/prove_equation.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/rules/equation/counterexample.h"
#include "weft/rules/equation/equation_degree.h"
#include "weft/rules/equation/legal_sizes.h"
#include "weft/rules/equation/rounding.h"
#include "weft/rules/equation/size_guard.h"
#include "weft/rules/equation/trial.h"

namespace weft::equation {
namespace {

constexpr int kUnderGuard = 64;       // fresh sizes on which a guard is tested
constexpr int kFewestUnderGuard = 6;  // minimum, if the guard excludes most small sizes
constexpr std::int64_t kMostExampleElements = std::int64_t{1} << 16;
constexpr int kEnoughFailures = 4;         // before looking for another guard
constexpr double kMostDrawnWork = 15'000;  // per side; many small sizes find more than few large ones
constexpr std::size_t kRoundingInstances = 8;
constexpr std::size_t kOrderInstances = 4;
constexpr int kRealRunsAtOnce = 16;        // per instance
constexpr std::size_t kMostPlans = 4'000;  // about 20 KiB each, cached between rules

// The cases drawn so far and their outcomes.
class EquationClaim {
 public:
  using Guard = SizeGuard;
  static constexpr int kGuardRounds = 16;

  EquationClaim(const Equation& equation, const rule::ProveOptions& options, Algebra& algebra)
      : equation_(equation), options_(options), trial_(equation, algebra), random_(options.seed) {}

  std::optional<rule::Verdict> begin() {
    if (const Status form = check_form(equation_); !form.ok()) return ill_typed(form.error().message);
    if (const Status sizes = check_examples(); !sizes.ok()) return ill_typed(sizes.error().message);
    choose_ranks();
    if (const Status conditions = collect_conditions(); !conditions.ok())
      return ill_typed(conditions.error().message);
    try_example();
    if (failing_) return rule::refuted(*this);
    draw(options_.shapes, legal_, nullptr);
    if (good_.empty() && bad_.empty())
      return ill_typed(fmt::format("found no sizes at which the source is well typed: {}", why_));
    return std::nullopt;
  }

  std::int64_t successes() const { return static_cast<std::int64_t>(good_.size()); }
  std::int64_t failures() const { return static_cast<std::int64_t>(bad_.size()); }

  rule::Verdict never_holds() {
    return only_ill_typed_ ? ill_typed(fmt::format("target: {}", why_)) : rule::refuted(*this);
  }

  // Draws sizes at which the target is well typed too: they show more about when the rule holds.
  void run_more_cases() { draw(options_.shapes / 2, legal_for_both_, nullptr); }

  std::optional<SizeGuard> find_guard() const {
    std::vector<SizeSample> good, bad;
    for (const Kept& kept : good_) good.push_back(kept.sample);
    for (const Kept& kept : bad_) bad.push_back(kept.sample);
    return equation::find_guard(atoms_, example_ ? *example_ : good[0], good, bad);
  }

  rule::GuardOutcome try_guard(const SizeGuard& guard) {
    std::vector<LegalSizes> legal = legal_;
    for (std::size_t k = 0; k < legal.size(); ++k) {
      std::vector<SizeCondition> more;
      for (const GuardAtom& atom : guard.atoms) more.push_back(condition_on(atom, ranks_[k]));
      legal[k].require(more);
    }
    const std::size_t failures = bad_.size();
    draw(std::max(options_.shapes, kUnderGuard), legal, &guard);
    if (bad_.size() > failures) return rule::GuardOutcome::fails;
    std::vector<Kept> held;
    for (const Kept& kept : good_)
      if (guard.holds(kept.sample)) held.push_back(kept);
    if (held.size() < kFewestUnderGuard) return rule::GuardOutcome::too_few_cases;
    good_ = std::move(held);
    return rule::GuardOutcome::holds;
  }

  std::string print(const SizeGuard& guard) const { return guard.text(); }

  bool run_more_orders() {
    std::ranges::stable_sort(good_, {}, [](const Kept& kept) { return elements_in(kept.at.sizes); });
    const auto shapes = static_cast<std::int64_t>(good_.size());
    tried_ = {shapes, options_.draws, shapes * options_.draws};
    const std::int64_t missing = std::clamp<std::int64_t>(
        runs_needed(comparisons(), options_.order_error) - tried_.runs, 0, options_.max_order_runs);
    const std::size_t places = std::min(good_.size(), kOrderInstances);
    for (std::size_t k = 0; missing > 0 && k < places; ++k) {
      const PlacedSizes at = good_[k].at;
      const auto runs = static_cast<std::int32_t>(missing / static_cast<std::int64_t>(places) + 1);
      if (is_bad(trial_.at(at.sizes, at.ranks, runs, random_).outcome)) {
        failing_ = at;
        return false;
      }
      tried_.runs += runs;
    }
    return run_more_reals();
  }

  rule::RealJudgement real_judgement() const {
    const rule::RealEvidence& reals = trial_.reals();
    return {reals.conclusive, std::ranges::any_of(good_, &Kept::alone), false, reals.apart};
  }

  const rule::ProveOptions& options() const { return options_; }

  std::int64_t degree() const { return equation::degree(equation_); }
  rule::Comparisons comparisons() const { return equation::comparisons(equation_); }
  rule::TriedCounts tried() const { return tried_; }

  void describe(rule::Verdict& verdict) {
    if (std::ranges::any_of(good_, &Kept::alone))
      verdict.reason = "holds for the order of real numbers, but not for every total order";
    std::vector<Instance> instances;  // largest first
    const std::size_t stride = std::max<std::size_t>(good_.size() / kRoundingInstances, 1);
    for (std::size_t k = good_.size(); k > 0 && instances.size() < kRoundingInstances;
         k -= std::min(k, stride))
      if (Tried tried = trial_.at(good_[k - 1].at.sizes, good_[k - 1].at.ranks, 1, random_); tried.instance)
        instances.push_back(std::move(*tried.instance));
    verdict.rounding = classify_rounding(equation_, instances, random_);
    if (verdict.reason.empty()) verdict.reason = unbound_inputs();
  }

  void add_counterexample(rule::Verdict& verdict) {
    const PlacedSizes failing = failing_ ? *failing_ : smallest_bad();
    const PlacedSizes smallest = smallest_failure(trial_, legal_[place_of(failing.ranks)], failing, random_);
    verdict.counterexamples.push_back(counterexample_at(trial_, smallest, random_));
  }

 private:
  struct Kept {
    PlacedSizes at;
    SizeSample sample;
    bool alone = false;  // equal on real numbers only: over the field the sides differ
  };

  static rule::Verdict ill_typed(std::string reason) {
    rule::Verdict verdict;
    verdict.judgement = rule::Judgement::ill_typed;
    verdict.reason = std::move(reason);
    return verdict;
  }

  Status check_examples() const {
    for (const EquationInput& input : equation_.inputs) {
      std::int64_t room = kMostExampleElements;
      for (const std::int64_t size : input.example) {
        if (size < 1)
          return user_error(fmt::format("a size of {} must be at least 1, found {}", input.name, size));
        room /= size;
      }
      if (room < 1)
        return user_error(fmt::format("{} must have at most {} elements, found sizes [{}]", input.name,
                                      kMostExampleElements, fmt::join(input.example, ", ")));
    }
    return {};
  }

  // Tries 3, 5 and 7 ranks besides the rank counts of the rule, since powers of two hide mistakes.
  // Not with groups, which name ranks explicitly.
  void choose_ranks() {
    ranks_ = equation_.ranks;
    if (!equation_.distributed()) ranks_ = {1};
    const auto grouped = [](const Operation& operation) { return !operation.details.groups.empty(); };
    if (equation_.distributed() && std::ranges::none_of(equation_.source, grouped) &&
        std::ranges::none_of(equation_.target, grouped))
      ranks_.insert(ranks_.end(), {3, 5, 7});
    std::ranges::sort(ranks_);
    ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
  }

  Status collect_conditions() {
    for (const std::int32_t ranks : ranks_) {
      if (ranks < 1 || ranks > 64)
        return user_error(fmt::format("ranks must be from 1 to 64, found {}", ranks));
      auto source = conditions_of(equation_, Which::source, ranks);
      if (!source.ok()) return user_error(fmt::format("source: {}", source.error().message));
      auto target = conditions_of(equation_, Which::target, ranks);
      if (!target.ok()) return user_error(fmt::format("target: {}", target.error().message));
      if (ranks == ranks_[0]) atoms_ = guard_atoms(equation_, *source, &*target);
      legal_.emplace_back(equation_, std::move(source).value());
      legal_for_both_.push_back(legal_.back());
      legal_for_both_.back().require(conditions_on_inputs(*target));
    }
    return {};
  }

  SizeSample sample_of(const PlacedSizes& at) const {
    return {legal_[0].conditions().values_of(at.sizes), at.ranks};
  }

  void note(const PlacedSizes& at, const Tried& tried) {
    if (tried.outcome == Outcome::source_ill_typed || tried.outcome == Outcome::too_much_work) {
      why_ = tried.why;
      return;
    }
    if (!is_bad(tried.outcome)) {
      good_.push_back({at, sample_of(at), tried.outcome == Outcome::equal_in_reals});
      return;
    }
    if (tried.outcome == Outcome::target_ill_typed)
      why_ = tried.why;
    else
      only_ill_typed_ = false;
    bad_.push_back({at, sample_of(at), false});
  }

  void try_example() {
    PlacedSizes at;
    for (const EquationInput& input : equation_.inputs) at.sizes.push_back(input.example);
    for (const std::int32_t ranks : equation_.distributed() ? equation_.ranks : ranks_) {
      at.ranks = ranks;
      Tried tried = trial_.at(at.sizes, ranks, std::max(options_.draws, 3), random_);
      if (tried.outcome == Outcome::source_ill_typed || tried.outcome == Outcome::too_much_work) continue;
      if (is_bad(tried.outcome) && !failing_) failing_ = at;
      if (!example_) example_ = sample_of(at);
      seen_.insert({ranks, at.sizes});
      note(at, tried);
    }
  }

  // Runs again on real numbers: where numbers are compared, on draws with ties; and often, if only
  // real numbers support the rule.
  bool run_more_reals() {
    const bool alone = std::ranges::any_of(good_, &Kept::alone);
    const auto wanted = alone ? static_cast<std::int64_t>(1 / options_.max_error) : options_.min_real_runs;
    const std::size_t places = std::min(good_.size(), kOrderInstances);
    for (std::int64_t turn = 0; turn < 4 * wanted; turn += kRealRunsAtOnce) {
      const bool compared = compares(equation_) && turn < kRealRunsAtOnce * static_cast<std::int64_t>(places);
      if (!compared && trial_.reals().conclusive > wanted) break;
      const PlacedSizes at = good_[static_cast<std::size_t>(turn / kRealRunsAtOnce) % places].at;
      const Tried tried = trial_.at(at.sizes, at.ranks, 1, random_);
      if (!is_bad(tried.outcome) && trial_.holds_in_reals(*tried.instance, kRealRunsAtOnce, random_))
        continue;
      failing_ = at;
      return false;
    }
    return true;
  }

  // Tries `wanted` sizes, or as many as can be drawn; stops early if a guard fails.
  void draw(std::int32_t wanted, std::span<const LegalSizes> legal, const SizeGuard* guard) {
    std::int32_t tried = 0, failures = 0;
    const std::int32_t attempts = 6 * wanted;
    for (std::int32_t turn = 0; turn < attempts && tried < wanted; ++turn) {
      const std::size_t which = static_cast<std::size_t>(turn) % legal.size();
      // Draw larger sizes when the small ones run out.
      const std::int32_t late = turn / (2 * wanted);
      const std::int64_t largest = (turn % 4 == 3 ? 5 : 3) + 3 * late;
      auto sizes = legal[which].draw(random_, turn / static_cast<std::int32_t>(legal.size()), largest);
      if (!sizes) continue;
      PlacedSizes at{std::move(*sizes), ranks_[which]};
      if (elements_in(at.sizes) > kMostExampleElements) continue;
      if (guard != nullptr && !guard->holds(sample_of(at))) continue;
      if (!seen_.insert({at.ranks, at.sizes}).second) continue;
      Tried result = trial_.at(at.sizes, at.ranks, options_.draws, random_, kMostDrawnWork * (1 + 4 * late));
      const bool failed = is_bad(result.outcome);
      if (failed || result.instance) ++tried;
      note(at, result);
      if (failed && guard != nullptr && ++failures == kEnoughFailures) break;
    }
  }

  const PlacedSizes& smallest_bad() const {
    return std::ranges::min_element(bad_, {}, [](const Kept& kept) { return elements_in(kept.at.sizes); })
        ->at;
  }

  std::size_t place_of(std::int32_t ranks) const {
    return static_cast<std::size_t>(std::ranges::find(ranks_, ranks) - ranks_.begin());
  }

  std::string unbound_inputs() const {
    const auto uses = [](std::span<const Operation> side, std::size_t input) {
      return std::ranges::any_of(side, [&](const Operation& operation) {
        return std::ranges::find(operation.operands, Operand{-1, static_cast<std::int32_t>(input)}) !=
               operation.operands.end();
      });
    };
    std::vector<std::string_view> names;
    for (std::size_t k = 0; k < equation_.inputs.size(); ++k)
      if (uses(equation_.target, k) && !uses(equation_.source, k)) names.push_back(equation_.inputs[k].name);
    return names.empty()
               ? std::string()
               : fmt::format("the target uses what the source does not bind: {}", fmt::join(names, ", "));
  }

  const Equation& equation_;
  const rule::ProveOptions& options_;
  Trial trial_;
  Random random_;
  std::vector<std::int32_t> ranks_;
  std::vector<LegalSizes> legal_,
      legal_for_both_;  // one per entry of ranks_; for the source, and for both sides
  std::vector<GuardAtom> atoms_;
  std::set<std::pair<std::int32_t, InputSizes>> seen_;
  std::vector<Kept> good_, bad_;
  std::optional<SizeSample> example_;
  std::optional<PlacedSizes> failing_;  // the deciding case; if unset, the smallest that failed
  rule::TriedCounts tried_;
  bool only_ill_typed_ = true;
  std::string why_;  // why the last ill-typed side was ill-typed
};

}  // namespace

rule::Verdict Prover::prove(const Equation& equation) {
  if (algebra_.plan_count() > kMostPlans) algebra_ = Algebra();
  EquationClaim claim(equation, options_, algebra_);
  return rule::judge(claim);
}

rule::Verdict prove(const Equation& equation, const rule::ProveOptions& options) {
  return Prover(options).prove(equation);
}

}  // namespace weft::equation
