// weft/rule/judge.h -- the one judge: what must hold before a rule or an equation is called proven.
//
//   draw cases, run both sides
//     all equal     proven, with the probability that a false claim got here (error_bound.h)
//     none equal    refuted, or one side never makes sense
//     some not      find a guard that tells them apart, try it on fresh cases:
//       one holds     guarded, with a case outside the guard
//       none does     refuted, with the smallest case found
//
// A claim, a rule of plans (prove_rule.h) or an equation by position (equation/prove_equation.h), says how its
// cases are drawn, run and told apart. When it is proven is decided here alone.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>

#include "weft/rule/error_bound.h"
#include "weft/rule/verdict.h"

namespace weft::rule {

struct ProveOptions {
  // Distinct sizes to try; half of them with grouped convolutions where there are any.
  std::int32_t shapes = 96;
  std::int32_t draws = 1;  // random values at each
  // Where numbers are compared: runs go on at the smallest sizes until orders add no more than this to the
  // bound, or there are that many.
  double order_error = 1e-6;
  std::int64_t most_order_runs = 512;
  std::uint64_t seed = 1;
};

// How a guard fared on fresh cases.
enum class UnderGuard : std::uint8_t { holds, fails, too_few_cases };

template <class C>
concept Claim = requires(C claim, const typename C::Guard& guard, Verdict& verdict) {
  // Draws and runs the first cases; a verdict where there is nothing more to judge.
  { claim.begin() } -> std::same_as<std::optional<Verdict>>;
  { claim.successes() } -> std::convertible_to<std::int64_t>;
  { claim.failures() } -> std::convertible_to<std::int64_t>;
  // REQUIRES: no case succeeded
  { claim.never_holds() } -> std::same_as<Verdict>;
  // More cases to tell successes from failures by.
  { claim.look_closer() };
  // Nothing: no guard tells the failures from the successes.
  { claim.find_guard() } -> std::same_as<std::optional<typename C::Guard>>;
  // Draws cases under the guard. Where it holds, only cases under it count from then on.
  { claim.try_guard(guard) } -> std::same_as<UnderGuard>;
  { claim.print(guard) } -> std::convertible_to<std::string>;
  // Runs on where numbers are compared, one order more each time. False: a case that held fails.
  { claim.run_more_orders() } -> std::same_as<bool>;
  { claim.degree() } -> std::convertible_to<std::int64_t>;
  { claim.comparisons() } -> std::same_as<Comparisons>;
  { claim.tried() } -> std::same_as<TriedCounts>;
  // Rounding, and what else there is to say of a claim that holds.
  { claim.describe(verdict) };
  { claim.add_counterexample(verdict) };
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

// REQUIRES: every case that counts held
template <Claim C>
Verdict proven(C& claim) {
  if (!claim.run_more_orders()) return refuted(claim);
  const TriedCounts tried = claim.tried();
  Verdict verdict;
  verdict.judgement = Judgement::proven;
  verdict.shapes = static_cast<std::int32_t>(tried.sizes);
  verdict.error_probability = error_bound(claim.degree(), claim.comparisons(), tried);
  claim.describe(verdict);
  return verdict;
}

template <Claim C>
Verdict judge(C& claim) {
  if (std::optional<Verdict> verdict = claim.begin()) return *std::move(verdict);
  if (claim.failures() == 0) return proven(claim);
  if (claim.successes() == 0) return claim.never_holds();
  claim.look_closer();
  for (int round = 0; round < C::kGuardRounds; ++round) {
    const auto guard = claim.find_guard();
    if (!guard) break;
    const UnderGuard outcome = claim.try_guard(*guard);
    if (outcome == UnderGuard::fails) continue;
    if (outcome == UnderGuard::too_few_cases) break;
    Verdict verdict = proven(claim);
    if (verdict.judgement != Judgement::proven) return verdict;
    verdict.judgement = Judgement::guarded;
    verdict.guard = claim.print(*guard);
    claim.add_counterexample(verdict);
    return verdict;
  }
  return refuted(claim);
}

}  // namespace weft::rule
