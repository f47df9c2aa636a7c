// weft/rules/rule/judge.h -- what must hold before a rule or an equation is called proven.
//
//   draw cases, run both sides over the field and on real numbers
//     all equal     proven, with the probability that a false claim passed (error_bound.h);
//                   proven up to rounding if only the real numbers support it;
//                   undecided if that probability is not small
//     none equal    refuted, or one side is always ill-typed
//     some not      find a guard that separates them, try it on fresh cases:
//       one holds     guarded, with a case outside the guard
//       none does     refuted, with the smallest case found
//
// A claim defines how its cases are drawn, run and separated: a rule of plans (prove_rule.h) or a
// positional equation (equation/prove_equation.h). When it is proven is decided only here.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "weft/rules/rule/error_bound.h"
#include "weft/rules/rule/verdict.h"

namespace weft::rule {

struct ProveOptions {
  // The number of distinct sizes to try; half of them with grouped convolutions, if there are any.
  std::int32_t shapes = 96;
  std::int32_t draws = 1;  // sets of random values per choice of sizes
  // If numbers are compared, runs continue at the smallest sizes until orders add at most
  // `order_error` to the bound, or there are `max_order_runs`.
  double order_error = 1e-6;
  std::int64_t max_order_runs = 2048;
  // A proof needs at most this probability of a false verdict and at least this many conclusive
  // runs on real numbers.
  double max_error = 1e-3;
  std::int64_t min_real_runs = 24;
  std::uint64_t seed = 1;
};

// The result of the runs on real numbers for a claim that held in all of them.
struct RealJudgement {
  std::int64_t conclusive = 0;  // runs that rounding did not make inconclusive
  bool alone = false;           // the sides differ over the field; only real numbers support the claim
  bool loses = false;           // the sides differ after rounding to low-precision dtypes
  double apart = 0;             // the largest relative difference
};

// The result of a guard on fresh cases.
enum class GuardOutcome : std::uint8_t { holds, fails, too_few_cases };

template <class C>
concept Claim = requires(C claim, const typename C::Guard& guard, Verdict& verdict) {
  // Draws and runs the first cases. Returns a verdict if that already decides.
  { claim.begin() } -> std::same_as<std::optional<Verdict>>;
  { claim.successes() } -> std::convertible_to<std::int64_t>;
  { claim.failures() } -> std::convertible_to<std::int64_t>;
  // REQUIRES: no case succeeded
  { claim.never_holds() } -> std::same_as<Verdict>;
  // Runs more cases, to separate successes from failures.
  {claim.run_more_cases()};
  // nullopt if no guard separates the failures from the successes.
  { claim.find_guard() } -> std::same_as<std::optional<typename C::Guard>>;
  // Draws cases under the guard. If it holds, only cases under it count from then on.
  { claim.try_guard(guard) } -> std::same_as<GuardOutcome>;
  { claim.print(guard) } -> std::convertible_to<std::string>;
  // If numbers are compared, runs more cases, each with another order. False if a case fails that
  // held before.
  { claim.run_more_orders() } -> std::same_as<bool>;
  { claim.degree() } -> std::convertible_to<std::int64_t>;
  { claim.comparisons() } -> std::same_as<Comparisons>;
  { claim.tried() } -> std::same_as<TriedCounts>;
  { claim.real_judgement() } -> std::same_as<RealJudgement>;
  { claim.options() } -> std::same_as<const ProveOptions&>;
  // Adds rounding and other details to the verdict of a claim that holds.
  {claim.describe(verdict)};
  {claim.add_counterexample(verdict)};
  { C::kGuardRounds } -> std::convertible_to<int>;
};

template <Claim C>
Verdict refuted(C& claim) {
  Verdict verdict;
  verdict.judgement = Judgement::refuted;
  verdict.shapes = static_cast<std::int32_t>(claim.successes() + claim.failures());
  verdict.error_probability = 0;
  claim.add_counterexample(verdict);
  return verdict;
}

// A proof needs a small error bound and enough conclusive runs on real numbers.
inline void decide(Verdict& verdict, const ProveOptions& options) {
  if (verdict.real_runs < options.min_real_runs) {
    verdict.judgement = Judgement::undecided;
    verdict.reason =
        fmt::format("only {} conclusive runs because of rounding or NaN results, expected at least {}",
                    verdict.real_runs, options.min_real_runs);
  } else if (!(verdict.error_probability <= options.max_error)) {
    verdict.judgement = Judgement::undecided;
    verdict.reason = fmt::format("a false rule would have passed with probability {:.1g}, more than {:.0g}",
                                 verdict.error_probability, options.max_error);
  }
}

// REQUIRES: every counted case held
template <Claim C>
Verdict proven(C& claim) {
  if (!claim.run_more_orders()) return refuted(claim);
  const TriedCounts tried = claim.tried();
  const RealJudgement real = claim.real_judgement();
  Verdict verdict;
  verdict.judgement = real.alone || real.loses ? Judgement::rounded : Judgement::proven;
  verdict.shapes = static_cast<std::int32_t>(tried.sizes);
  verdict.real_runs = real.conclusive;
  verdict.rounding_bound = real.apart;
  verdict.unseen_share = unseen_share(tried.sizes);
  verdict.error_probability =
      real.alone ? sampled_error(real.conclusive) : error_bound(claim.degree(), claim.comparisons(), tried);
  claim.describe(verdict);
  decide(verdict, claim.options());
  return verdict;
}

template <Claim C>
Verdict judge(C& claim) {
  if (std::optional<Verdict> verdict = claim.begin()) return *std::move(verdict);
  if (claim.failures() == 0) return proven(claim);
  if (claim.successes() == 0) return claim.never_holds();
  claim.run_more_cases();
  for (int round = 0; round < C::kGuardRounds; ++round) {
    const auto guard = claim.find_guard();
    if (!guard) break;
    const GuardOutcome outcome = claim.try_guard(*guard);
    if (outcome == GuardOutcome::fails) continue;
    if (outcome == GuardOutcome::too_few_cases) break;
    Verdict verdict = proven(claim);
    if (!holds(verdict)) return verdict;
    verdict.judgement = Judgement::guarded;
    verdict.guard = claim.print(*guard);
    claim.add_counterexample(verdict);
    return verdict;
  }
  return refuted(claim);
}

}  // namespace weft::rule
