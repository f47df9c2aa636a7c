#include "weft/rules/rule/prove_rule.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/breakpoints.h"
#include "weft/rules/rule/float_range.h"
#include "weft/rules/rule/narrow_search.h"
#include "weft/rules/rule/numbers.h"
#include "weft/rules/rule/row_limit.h"
#include "weft/rules/rule/row_positions.h"
#include "weft/rules/rule/rule_counterexample.h"
#include "weft/rules/rule/rule_degree.h"
#include "weft/rules/rule/rule_guard.h"
#include "weft/rules/rule/run_instance.h"
#include "weft/rules/rule/stored_run.h"
#include "weft/rules/rule/tried_sizes.h"

namespace weft::rule {
namespace {

constexpr std::size_t kRuleRoundingInstances = 8;
constexpr std::int32_t kShapesToASweep = 24, kSweepAttempts = 80;
// Runs on real numbers per instance: if the sides agree over the field; if they differ there; and
// again at the smallest instances, where ties are most frequent.
constexpr int kRealRuns = 1, kRealRunsAlone = 16, kRealRunsAtSmall = 24, kRealRunsOfPolynomials = 2;
constexpr std::size_t kMostHints = 6;
constexpr std::size_t kSmallInstances = 8, kNarrowInstances = 3;
// Evaluations of the search for narrow regions, per shape tried.
constexpr int kEvaluationsAlone = 40, kEvaluations = 12;
std::vector<plan::DType> dtypes_of_inputs(const RuleInstance& instance) {
  std::vector<plan::DType> dtypes;
  for (std::size_t id = 0; id < instance.graph.node_count(); ++id)
    if (const plan::NodeView node = instance.graph.view(plan::NodeId(id)); &node.op() == &ops::input())
      dtypes.push_back(node.result_type(0).dtype);
  return dtypes;
}

// A rule limited to fewer rows is useless.
constexpr std::int64_t kFewestRows = 8;

Verdict undecided(Verdict verdict, std::string reason) {
  verdict.judgement = Judgement::undecided;
  verdict.guard.clear();
  verdict.reason = std::move(reason);
  return verdict;
}

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
    verdict.reason = "the right side is always ill-typed: " + judged_.front().instance.refusal->message;
    return verdict;
  }

  // Instances that held may only have been lucky with their values: run them more often.
  void run_more_cases() {
    for (JudgedInstance& each : judged_)
      if (each.good) each.good = holds_in_reals(each, kRealRunsAtSmall);
  }

  std::optional<Guard> find_guard() const { return rule::find_guard(rule_, judged_); }

  GuardOutcome try_guard(const Guard& guard) {
    Rule guarded = rule_;
    guarded.when.insert(guarded.when.end(), guard.begin(), guard.end());
    std::vector<JudgedInstance> fresh;
    if (run_cases(guarded, enough_under_guard(), fresh)) return GuardOutcome::too_few_cases;
    if (!std::ranges::all_of(fresh, &JudgedInstance::good)) {
      std::ranges::move(fresh, std::back_inserter(judged_));
      return GuardOutcome::fails;
    }
    // At size 1 most things are equal: a guard that leaves only such sizes just makes the sample
    // smaller.
    if (!tried_of(rule_, fresh).spreads_like(tried_of(rule_, judged_))) return GuardOutcome::too_few_cases;
    outside_ = find_counterexample(rule_, judged_, random_);
    judged_ = std::move(fresh);
    guard_ = guard;
    return GuardOutcome::holds;
  }

  std::string print(const Guard& guard) const { return rule::print(guard, rule_); }
  const Guard& guard() const { return guard_; }

  // run_cases() already ran the orders; this searches the narrow regions that random draws miss.
  bool run_more_orders() {
    // The smallest instance per combination of dtypes.
    std::vector<const RuleInstance*> some = some_good(
        judged_.size(), [](const JudgedInstance& each) { return has_switches(each.instance.graph); });
    std::set<std::vector<plan::DType>> seen;
    std::erase_if(some,
                  [&](const RuleInstance* each) { return !seen.insert(dtypes_of_inputs(*each)).second; });
    some.resize(std::min(some.size(), kNarrowInstances));
    const bool alone = std::ranges::any_of(judged_, &JudgedInstance::alone);
    const int evaluations = options_.shapes * (alone ? kEvaluationsAlone : kEvaluations);
    for (const RuleInstance* instance : some)
      if (const auto run = find_narrow_difference(*instance, evaluations, random_)) {
        narrow_ = counterexample_of(rule_, *instance, *run);
        return false;
      }
    return true;
  }

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

  RealJudgement real_judgement() const {
    RealEvidence all;
    for (const JudgedInstance& each : judged_) all.add(each.real);
    return {all.conclusive, std::ranges::any_of(judged_, &JudgedInstance::alone), all.loses, all.apart};
  }

  const ProveOptions& options() const { return options_; }

  TriedCounts tried() const { return {static_cast<std::int64_t>(judged_.size()), options_.draws, runs_}; }

  void describe(Verdict& verdict) {
    const std::vector<const RuleInstance*> some =
        some_good(kRuleRoundingInstances, [](const JudgedInstance&) { return true; });
    const bool same =
        std::ranges::all_of(judged_, [](const JudgedInstance& each) { return each.real.same; }) &&
        std::ranges::all_of(some, [&](const RuleInstance* each) { return same_in_f32(*each); });
    verdict.range = find_float_range(all_good(), draws_of_a_sweep(), random_);
    verdict.rounding = same && verdict.range.is_all() ? Rounding::exact : classify_rounding(some);
  }

  // What was not covered by any draw; empty if nothing is missing.
  std::string untried() const {
    constexpr std::int32_t kEnough = 16;  // shapes needed to expect that numbers vary
    if (options_.shapes < kEnough) return {};
    Rule guarded = rule_;
    guarded.when.insert(guarded.when.end(), guard_.begin(), guard_.end());
    return tried_of(rule_, judged_).missing(guarded);
  }
  std::optional<std::int64_t> most_rows() {
    return rule::most_rows(rule_, all_good(), draws_of_a_sweep(), random_);
  }

  void add_counterexample(Verdict& verdict) {
    verdict.counterexamples.push_back(narrow_    ? *narrow_
                                      : outside_ ? *outside_
                                                 : find_counterexample(rule_, judged_, random_));
  }

 private:
  // Draws and runs instances of `rule`; returns a verdict if there are none.
  std::optional<Verdict> run_cases(const Rule& rule, std::int32_t shapes,
                                   std::vector<JudgedInstance>& judged) {
    std::set<std::uint64_t> seen;
    for (std::int32_t draw = 0; draw < 2 * shapes; ++draw) {
      if (static_cast<std::int32_t>(seen.size()) >= shapes) break;
      InstanceOptions options;
      options.wide = draw % 4 == 3;
      auto instance = draw_instance(rule, random_, options);
      if (!instance.ok()) {
        if (options.wide) continue;
        if (!seen.empty()) break;
        Verdict verdict;
        verdict.reason = instance.error().message;
        return verdict;
      }
      if (!seen.insert(instance->shape).second) continue;
      judge(std::move(instance).value(), judged);
    }
    if (judged.empty()) return nothing_drawn(rule);
    for (std::int32_t round = 0; round < options_.shapes / kShapesToASweep; ++round) sweep(rule, judged);
    run_more_orders(judged);
    run_more_reals(judged);
    return std::nullopt;
  }

  // Draws one instance per index of each input, in which its size differs from that of other
  // inputs.
  void sweep(const Rule& rule, std::vector<JudgedInstance>& judged) {
    InstanceOptions options;
    options.attempts = kSweepAttempts;
    for (std::uint16_t input = 0; input < rule.inputs.size(); ++input)
      for (const std::uint16_t index : rule.inputs[input].list) {
        options.apart = InputIndex{input, index};
        auto instance = draw_instance(rule, random_, options);
        if (!instance.ok()) continue;
        judge(std::move(instance).value(), judged);
      }
  }

  static Verdict nothing_drawn(const Rule& rule) {
    Verdict verdict;
    verdict.reason = fmt::format("no instance of {} was found", rule.name);
    return verdict;
  }

  // An unrelated guard would let failures pass as often as before. So draw enough instances under
  // it that a dozen failures would be expected.
  std::int32_t enough_under_guard() const {
    const auto wanted =
        static_cast<std::int64_t>(12 * judged_.size()) / std::max<std::int64_t>(1, failures());
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(wanted, options_.shapes, 16 * options_.shapes));
  }

  void judge(RuleInstance instance, std::vector<JudgedInstance>& judged) {
    JudgedInstance& each = judged.emplace_back(JudgedInstance{std::move(instance), false, false, {}});
    if (each.instance.refusal) return;
    for (std::int32_t draw = 0; draw < options_.draws && !each.alone; ++draw)
      each.alone = !holds_in_field(each);
    each.good = holds_in_reals(each, each.alone ? kRealRunsAlone : kRealRuns);
  }

  bool holds_in_field(JudgedInstance& each) {
    const auto run = run_field(each.instance, random_);
    ++runs_;
    if (run.ok() && run->by_constants) each.real.add({.same = false, .loses = true});
    return run.ok() && !run->difference;
  }

  // Good instances, smallest first.
  template <class Wanted>
  std::vector<const RuleInstance*> some_good(std::size_t most, const Wanted& wanted) const {
    std::vector<const RuleInstance*> some;
    for (const JudgedInstance& each : judged_)
      if (each.good && wanted(each)) some.push_back(&each.instance);
    std::ranges::stable_sort(some, {}, &RuleInstance::elements);
    some.resize(std::min(some.size(), most));
    return some;
  }

  std::vector<const RuleInstance*> all_good() const {
    return some_good(judged_.size(), [](const JudgedInstance&) { return true; });
  }

  int draws_of_a_sweep() const { return std::clamp(options_.shapes / 3, 4, 32); }

  // Whether both sides are equal in f32: doubles keep digits that f32 loses.
  bool same_in_f32(const RuleInstance& instance) {
    if (instance.distributed()) return true;
    RealDraws draws = draws_for(instance);
    for (int turn = 0; turn < RealDraws::kTurns; ++turn) {
      draws.begin(turn, random_);
      const StoredRun run =
          run_stored(instance, draw_inputs(instance, draws, random_), Exponents::of_dtype, random_.next());
      RealEvidence found;
      for (std::size_t k = 0; k < run.left.size(); ++k) add_compared(run.left[k], run.right[k], found);
      if (!found.same) return false;
    }
    return true;
  }

  bool holds_in_reals(JudgedInstance& each, int runs) {
    RealDraws draws = draws_for(each.instance, hints_);
    for (int run = 0; run < runs; ++run) {
      draws.begin(turn_++, random_);
      const auto found = run_real(each.instance, draws, random_);
      if (!found.ok()) return false;
      if (found->difference) {
        remember(each.instance, *found);
        return false;
      }
      each.real.add(found->evidence);
    }
    return true;
  }

  // Numbers on which the sides differ at one instance are tried at all others. Keeps those of the
  // smallest instance, which are the simplest.
  void remember(const RuleInstance& instance, const RealRun& failed) {
    if (!hints_.empty() && instance.elements >= hints_from_) return;
    hints_from_ = instance.elements;
    hints_.assign(failed.inputs.size(), {});
    for (std::size_t input = 0; input < failed.inputs.size(); ++input)
      for (const ops::Rounded& element : failed.inputs[input].data)
        if (hints_[input].size() < kMostHints &&
            std::ranges::find(hints_[input], element.value) == hints_[input].end())
          hints_[input].push_back(element.value);
  }

  // The smallest instances that held so far.
  static std::vector<JudgedInstance*> smallest(std::vector<JudgedInstance>& judged) {
    std::vector<JudgedInstance*> small;
    for (JudgedInstance& each : judged)
      if (each.good) small.push_back(&each);
    std::ranges::stable_sort(small, {}, [](const JudgedInstance* each) { return each->instance.elements; });
    small.resize(std::min(small.size(), kSmallInstances));
    return small;
  }

  // Ties are frequent in small instances. If only real numbers support a rule, many runs are
  // needed.
  void run_more_reals(std::vector<JudgedInstance>& judged) {
    const std::vector<JudgedInstance*> small = smallest(judged);
    for (JudgedInstance* each : small)
      each->good =
          holds_in_reals(*each, is_polynomial(each->instance) ? kRealRunsOfPolynomials : kRealRunsAtSmall);
    for (JudgedInstance& each : judged)
      if (each.good && !hints_.empty()) each.good = holds_in_reals(each, kRealRunsOfPolynomials);
    if (std::ranges::none_of(judged, [](const JudgedInstance& each) { return each.alone && each.good; }))
      return;
    const auto wanted = static_cast<std::int64_t>(1 / options_.max_error);
    std::int64_t conclusive = 0;
    for (const JudgedInstance& each : judged) conclusive += each.real.conclusive;
    for (std::int64_t run = 0; !small.empty() && run < 4 * wanted && conclusive <= wanted;
         run += kRealRunsAtSmall) {
      JudgedInstance& each = *small[static_cast<std::size_t>(run / kRealRunsAtSmall) % small.size()];
      conclusive -= each.real.conclusive;
      each.good = each.good && holds_in_reals(each, kRealRunsAtSmall);
      conclusive += each.real.conclusive;
      if (!each.good) return;
    }
  }

  // If numbers are compared, each run tests one order of them, so small instances are run
  // repeatedly.
  void run_more_orders(std::vector<JudgedInstance>& judged) {
    std::vector<JudgedInstance*> small = smallest(judged);
    std::erase_if(small, [](const JudgedInstance* each) {
      const Comparisons found = rule::comparisons(each->instance);
      return each->alone || found.with_zero + found.with_others == 0;
    });
    if (small.empty()) return;
    Comparisons most;
    for (const JudgedInstance* each : small)
      if (const Comparisons found = rule::comparisons(each->instance);
          found.with_zero + found.with_others > most.with_zero + most.with_others)
        most = found;
    // Until the rarest order has probably occurred.
    const std::int64_t runs =
        std::min(options_.max_order_runs, runs_needed(most, options_.order_error) - runs_);
    for (std::int64_t run = 0; run < runs; ++run) {
      JudgedInstance& each = *small[static_cast<std::size_t>(run) % small.size()];
      if (each.alone || holds_in_field(each)) continue;
      each.alone = true;
      each.good = each.good && holds_in_reals(each, kRealRunsAlone);
    }
  }

  const Rule& rule_;
  const ProveOptions& options_;
  Random random_;
  std::vector<JudgedInstance> judged_;
  std::int64_t runs_ = 0;
  int turn_ = 0;  // counts runs on real numbers
  RealDraws::Hints hints_;
  std::int64_t hints_from_ = 0;  // elements of the instance they come from
  Guard guard_;
  std::optional<Counterexample> outside_;  // a case outside the guard
  std::optional<Counterexample> narrow_;   // found by the narrow search
};

}  // namespace

RuleProof prove(const Rule& rule, const ProveOptions& options) {
  // Quotients of sizes must be exact, by the rule's own guard or by the one added here.
  const std::vector<Condition> even = missing_divisions(rule);
  Rule guarded = rule;
  guarded.when.insert(guarded.when.end(), even.begin(), even.end());
  RuleClaim claim(guarded, options);
  RuleProof proof;
  Verdict& verdict = proof.verdict;
  verdict = judge(claim);
  if (!holds(verdict)) return proof;
  if (verdict.judgement == Judgement::guarded) proof.guard = claim.guard();
  proof.guard.insert(proof.guard.begin(), even.begin(), even.end());
  if (const auto rows = claim.most_rows()) {
    const auto bounds = row_bounds(rule);
    if (!bounds || *rows < kFewestRows)
      return {
          undecided(std::move(verdict), "the sides differ at rows or positions beyond those that were run"),
          {}};
    for (const Number& bound : *bounds) {
      Condition most = comparison(Condition::Kind::less_equal, bound, literal_number(*rows));
      if (bound.kind != Number::Kind::literal && std::ranges::find(proof.guard, most) == proof.guard.end())
        proof.guard.push_back(std::move(most));
    }
  }
  if (std::string missing = claim.untried(); !missing.empty())
    return {undecided(std::move(verdict), std::move(missing)), {}};
  if (verdict.range.is_none())
    return {
        undecided(std::move(verdict), "f32 overflows or underflows on only one side, at ordinary magnitudes"),
        {}};
  if (proof.guard.empty()) return proof;
  verdict.judgement = Judgement::guarded;
  verdict.guard = print(proof.guard, rule);
  return proof;
}

}  // namespace weft::rule
