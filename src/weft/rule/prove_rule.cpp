#include "weft/rule/prove_rule.h"

#include <algorithm>
#include <set>

#include "weft/base/hash.h"
#include "weft/rule/rule_counterexample.h"
#include "weft/rule/rule_degree.h"
#include "weft/rule/rule_guard.h"
#include "weft/rule/run_instance.h"

namespace weft::rule {
namespace {

constexpr int kGuardRounds = 3;
constexpr std::size_t kRuleRoundingInstances = 8;
constexpr std::int32_t kShapesToASweep = 24, kSweepAttempts = 80;

class RuleProver {
 public:
  RuleProver(const Rule& rule, const ProveOptions& options)
      : rule_(rule), options_(options), random_(options.seed, Hasher().text(print(rule)).digest().low) {}

  RuleProof prove() {
    if (!judge(rule_, is_distributed(rule_) ? 2 * options_.shapes : options_.shapes, judged_))
      return std::move(proof_);
    if (all_good()) return proven(Judgement::proven, judged_);
    if (std::ranges::none_of(judged_, &JudgedInstance::good)) return never_good();
    for (int round = 0; round < kGuardRounds; ++round) {
      auto guard = find_guard(rule_, judged_);
      if (!guard) break;
      Rule guarded = rule_;
      guarded.when.insert(guarded.when.end(), guard->begin(), guard->end());
      std::vector<JudgedInstance> fresh;
      if (!judge(guarded, enough_under_guard(), fresh)) break;
      const bool holds = std::ranges::all_of(fresh, &JudgedInstance::good);
      if (holds) {
        proof_.guard = std::move(*guard);
        proof_.verdict.guard = print(proof_.guard, rule_);
        proof_.verdict.counterexamples.push_back(find_counterexample(rule_, judged_, random_));
        return proven(Judgement::guarded, fresh);
      }
      std::ranges::move(fresh, std::back_inserter(judged_));
    }
    return refuted();
  }

 private:
  // Draws and runs instances of `rule`. False when there is none; the proof then says so.
  bool judge(const Rule& rule, std::int32_t shapes, std::vector<JudgedInstance>& judged) {
    std::set<std::uint64_t> seen;
    for (std::int32_t draw = 0; draw < 2 * shapes; ++draw) {
      if (static_cast<std::int32_t>(seen.size()) >= shapes) break;
      auto instance = draw_instance(rule, random_);
      if (!instance.ok()) {
        if (!seen.empty()) break;
        proof_.verdict.judgement = Judgement::ill_typed;
        proof_.verdict.reason = instance.error().message;
        return false;
      }
      if (!seen.insert(instance->shape).second) continue;
      const bool good = holds_at(*instance, options_.draws);
      judged.push_back({std::move(instance).value(), good});
    }
    for (std::int32_t round = 0; round < options_.shapes / kShapesToASweep; ++round) sweep(rule, judged);
    run_more_orders(judged);
    return true;
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
    const auto failures = std::ranges::count(judged_, false, &JudgedInstance::good);
    const auto wanted = static_cast<std::int64_t>(12 * judged_.size()) / std::max<std::int64_t>(1, failures);
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
      const Comparisons found = comparisons(each.instance);
      if (each.good && found.with_zero + found.with_others > 0) small.push_back(&each);
    }
    if (small.empty()) return;
    std::ranges::stable_sort(small, {}, [](const JudgedInstance* each) { return each->instance.elements; });
    small.resize(std::min<std::size_t>(small.size(), 8));
    Comparisons most;
    for (const JudgedInstance* each : small)
      if (const Comparisons found = comparisons(each->instance);
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

  bool all_good() const { return std::ranges::all_of(judged_, &JudgedInstance::good); }

  RuleProof proven(Judgement judgement, std::vector<JudgedInstance>& judged) {
    proof_.verdict.judgement = judgement;
    proof_.verdict.shapes = static_cast<std::int32_t>(judged.size());
    std::int64_t most = 1;
    Comparisons compared;
    for (const JudgedInstance& each : judged) {
      most = std::max(most, degree(each.instance));
      const Comparisons found = comparisons(each.instance);
      if (found.with_zero + found.with_others > compared.with_zero + compared.with_others) compared = found;
    }
    proof_.verdict.error_probability =
        error_bound(most, compared, {static_cast<std::int64_t>(judged.size()), options_.draws, runs_});
    std::vector<RuleInstance> some;
    for (std::size_t k = 0; k < std::min(judged.size(), kRuleRoundingInstances); ++k)
      some.push_back(std::move(judged[k].instance));
    proof_.verdict.rounding = classify_rounding(some, random_);
    return std::move(proof_);
  }

  RuleProof never_good() {
    const auto runs =
        std::ranges::find_if(judged_, [](const JudgedInstance& each) { return !each.instance.refusal; });
    if (runs != judged_.end()) return refuted();
    proof_.verdict.judgement = Judgement::ill_typed;
    proof_.verdict.reason = "the right side never fits: " + judged_.front().instance.refusal->message;
    return std::move(proof_);
  }

  RuleProof refuted() {
    proof_.verdict.judgement = Judgement::refuted;
    proof_.verdict.shapes = static_cast<std::int32_t>(judged_.size());
    proof_.verdict.error_probability = 0;
    proof_.verdict.counterexamples = {find_counterexample(rule_, judged_, random_)};
    return std::move(proof_);
  }

  const Rule& rule_;
  const ProveOptions& options_;
  Random random_;
  std::vector<JudgedInstance> judged_;
  std::int64_t runs_ = 0;
  RuleProof proof_;
};

}  // namespace

RuleProof prove(const Rule& rule, const ProveOptions& options) { return RuleProver(rule, options).prove(); }

}  // namespace weft::rule
