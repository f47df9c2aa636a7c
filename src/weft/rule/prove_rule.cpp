#include "weft/rule/prove_rule.h"

#include <algorithm>
#include <optional>
#include <set>

#include "weft/base/hash.h"
#include "weft/rule/rule_counterexample.h"
#include "weft/rule/rule_degree.h"
#include "weft/rule/rule_guard.h"
#include "weft/rule/run_instance.h"

namespace weft::rule {
namespace {

constexpr std::size_t kRuleRoundingInstances = 8;
constexpr std::int32_t kShapesToASweep = 24, kSweepAttempts = 80;

class RuleClaim {
 public:
  using Guard = std::vector<Condition>;
  static constexpr int kGuardRounds = 3;

  RuleClaim(const Rule& rule, const ProveOptions& options)
      : rule_(rule),
        options_(options),
        random_(options.seed, Hasher().text(rule::print(rule)).digest().low) {}

  std::optional<Verdict> begin() {
    return run_cases(rule_, is_distributed(rule_) ? 2 * options_.shapes : options_.shapes, judged_);
  }

  std::int64_t successes() const { return std::ranges::count(judged_, true, &JudgedInstance::good); }
  std::int64_t failures() const { return std::ranges::count(judged_, false, &JudgedInstance::good); }

  Verdict never_holds() {
    const auto runs =
        std::ranges::find_if(judged_, [](const JudgedInstance& each) { return !each.instance.refusal; });
    if (runs != judged_.end()) return refuted(*this);
    Verdict verdict;
    verdict.reason = "the right side never fits: " + judged_.front().instance.refusal->message;
    return verdict;
  }

  void look_closer() {}

  std::optional<Guard> find_guard() const { return rule::find_guard(rule_, judged_); }

  UnderGuard try_guard(const Guard& guard) {
    Rule guarded = rule_;
    guarded.when.insert(guarded.when.end(), guard.begin(), guard.end());
    std::vector<JudgedInstance> fresh;
    if (run_cases(guarded, enough_under_guard(), fresh)) return UnderGuard::too_few_cases;
    if (!std::ranges::all_of(fresh, &JudgedInstance::good)) {
      std::ranges::move(fresh, std::back_inserter(judged_));
      return UnderGuard::fails;
    }
    outside_ = find_counterexample(rule_, judged_, random_);
    judged_ = std::move(fresh);
    guard_ = guard;
    return UnderGuard::holds;
  }

  std::string print(const Guard& guard) const { return rule::print(guard, rule_); }
  const Guard& guard() const { return guard_; }

  bool run_more_orders() const { return true; }  // run_cases() did

  std::int64_t degree() const {
    std::int64_t most = 1;
    for (const JudgedInstance& each : judged_) most = std::max(most, rule::degree(each.instance));
    return most;
  }

  Comparisons comparisons() const {
    Comparisons most;
    for (const JudgedInstance& each : judged_)
      if (const Comparisons found = rule::comparisons(each.instance);
          found.with_zero + found.with_others > most.with_zero + most.with_others)
        most = found;
    return most;
  }

  TriedCounts tried() const {
    return {static_cast<std::int64_t>(judged_.size()), options_.draws, runs_};
  }

  void describe(Verdict& verdict) {
    std::vector<RuleInstance> some;
    for (std::size_t k = 0; k < std::min(judged_.size(), kRuleRoundingInstances); ++k)
      some.push_back(std::move(judged_[k].instance));
    verdict.rounding = classify_rounding(some, random_);
  }

  void add_counterexample(Verdict& verdict) {
    verdict.counterexamples.push_back(outside_ ? *outside_ : find_counterexample(rule_, judged_, random_));
  }

 private:
  // Draws and runs instances of `rule`; a verdict where there is none.
  std::optional<Verdict> run_cases(const Rule& rule, std::int32_t shapes, std::vector<JudgedInstance>& judged) {
    std::set<std::uint64_t> seen;
    for (std::int32_t draw = 0; draw < 2 * shapes; ++draw) {
      if (static_cast<std::int32_t>(seen.size()) >= shapes) break;
      auto instance = draw_instance(rule, random_);
      if (!instance.ok()) {
        if (!seen.empty()) break;
        Verdict verdict;
        verdict.reason = instance.error().message;
        return verdict;
      }
      if (!seen.insert(instance->shape).second) continue;
      const bool good = holds_at(*instance, options_.draws);
      judged.push_back({std::move(instance).value(), good});
    }
    for (std::int32_t round = 0; round < options_.shapes / kShapesToASweep; ++round) sweep(rule, judged);
    run_more_orders(judged);
    return std::nullopt;
  }

  // Once for each index of each input: sizes that are apart there.
  void sweep(const Rule& rule, std::vector<JudgedInstance>& judged) {
    InstanceOptions options;
    options.attempts = kSweepAttempts;
    for (std::uint16_t input = 0; input < rule.inputs.size(); ++input)
      for (const std::uint16_t index : rule.inputs[input].list) {
        options.apart = InputIndex{input, index};
        auto instance = draw_instance(rule, random_, options);
        if (!instance.ok()) continue;
        const bool good = holds_at(*instance, options_.draws);
        judged.push_back({std::move(instance).value(), good});
      }
  }

  // A guard that has nothing to do with the failures would let them through as often as they came before: so
  // many instances are drawn under it that a dozen of them were to be expected.
  std::int32_t enough_under_guard() const {
    const auto wanted =
        static_cast<std::int64_t>(12 * judged_.size()) / std::max<std::int64_t>(1, failures());
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(wanted, options_.shapes, 16 * options_.shapes));
  }

  bool holds_at(const RuleInstance& instance, std::int32_t draws) {
    if (instance.refusal) return false;
    for (std::int32_t draw = 0; draw < draws; ++draw) {
      const auto run = run_field(instance, random_);
      ++runs_;
      if (!run.ok() || run->difference) return false;
    }
    return true;
  }

  // Where numbers are compared one run is one order of them: small instances are run again and again.
  void run_more_orders(std::vector<JudgedInstance>& judged) {
    std::vector<JudgedInstance*> small;
    for (JudgedInstance& each : judged) {
      const Comparisons found = rule::comparisons(each.instance);
      if (each.good && found.with_zero + found.with_others > 0) small.push_back(&each);
    }
    if (small.empty()) return;
    std::ranges::stable_sort(small, {}, [](const JudgedInstance* each) { return each->instance.elements; });
    small.resize(std::min<std::size_t>(small.size(), 8));
    Comparisons most;
    for (const JudgedInstance* each : small)
      if (const Comparisons found = rule::comparisons(each->instance);
          found.with_zero + found.with_others > most.with_zero + most.with_others)
        most = found;
    // Until the rarest order would have turned up.
    const std::int64_t runs =
        std::min(options_.most_order_runs, runs_needed(most, options_.order_error) - runs_);
    for (std::int64_t run = 0; run < runs; ++run) {
      JudgedInstance& each = *small[static_cast<std::size_t>(run) % small.size()];
      each.good = each.good && holds_at(each.instance, 1);
    }
  }

  const Rule& rule_;
  const ProveOptions& options_;
  Random random_;
  std::vector<JudgedInstance> judged_;
  std::int64_t runs_ = 0;
  Guard guard_;
  std::optional<Counterexample> outside_;  // a case outside the guard
};

}  // namespace

RuleProof prove(const Rule& rule, const ProveOptions& options) {
  RuleClaim claim(rule, options);
  RuleProof proof;
  proof.verdict = judge(claim);
  if (proof.verdict.judgement == Judgement::guarded) proof.guard = claim.guard();
  return proof;
}

}  // namespace weft::rule
