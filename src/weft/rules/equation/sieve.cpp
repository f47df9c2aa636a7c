#include "weft/rules/equation/sieve.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/rules/equation/canonical.h"
#include "weft/rules/equation/prove_equation.h"
#include "weft/rules/equation/term_equation.h"

namespace weft::equation {
namespace {

Equation reversed(Equation equation) {
  std::swap(equation.source, equation.target);
  for (auto& [source, target] : equation.outputs) std::swap(source, target);
  return equation;
}

// Smaller rules first; of equal size those with more inputs, which are more general.
std::pair<std::size_t, std::size_t> order_of(const Equation& equation) {
  return {size_of(equation), 64 - std::min<std::size_t>(equation.inputs.size(), 64)};
}

// Whether it follows from several smaller equations, or in one step from one of the same size.
// (With several of the same size, the derivation might as well go the other way.)
bool follows(const Theory& theory, const Equation& equation) {
  const std::size_t size = size_of(equation);
  return theory.derive(equation, {.below = size}) ||
         theory.derive(equation, {.rounds = 1, .below = size + 1});
}

}  // namespace

Sieve::Sieve(const GenerateOptions& options, TermTable& terms, TermRules& rewritings, Generated& generated)
    : options_(options), terms_(terms), rewritings_(rewritings), generated_(generated) {}

Sieve::Outcome Sieve::judge(std::span<const std::array<TermId, 2>> outputs) {
  const Equation equation = equation_of(terms_, outputs);
  const Digest key = canonical_key(equation);
  if (const auto found = judged_.find(key); found != judged_.end()) {
    ++generated_.counts.pruned_renaming;
    return found->second;
  }
  const Outcome outcome = judge(equation, outputs);
  judged_.emplace(key, outcome);
  return outcome;
}

Sieve::Outcome Sieve::judge(const Equation& equation, std::span<const std::array<TermId, 2>> outputs) {
  GenerateCounts& counts = generated_.counts;
  ++counts.candidates;
  if (follows(proven_, equation)) {
    ++counts.pruned_follows;
    return Outcome::equal;
  }
  rule::Verdict verdict = prove(equation, options_.prove);
  switch (verdict.judgement) {
    case rule::Judgement::proven:
    case rule::Judgement::rounded:
      ++counts.proven;
      keep(equation, std::move(verdict), outputs);
      return Outcome::equal;
    case rule::Judgement::guarded:
      ++counts.guarded;
      if (follows(all_, equation))
        ++counts.pruned_follows;
      else
        keep(equation, std::move(verdict), outputs);
      return Outcome::equal_under_guard;
    case rule::Judgement::undecided:
    case rule::Judgement::refuted: ++counts.refuted; return Outcome::unequal;
    case rule::Judgement::ill_typed: ++counts.ill_typed; return Outcome::unequal;
  }
  return Outcome::unequal;
}

void Sieve::keep(const Equation& equation, rule::Verdict verdict,
                 std::span<const std::array<TermId, 2>> outputs) {
  rule::Verdict backward = prove(reversed(equation), options_.prove);
  const bool forth = holds_everywhere(verdict), back = holds_everywhere(backward);
  for (const auto& [larger, smaller] : outputs) {
    const bool same_joints = terms_[larger].type == terms_[smaller].type;
    if (forth) rewritings_.add(larger, smaller, same_joints);
    if (back) rewritings_.add(smaller, larger, same_joints);
  }
  proven_.add(equation, forth, back);
  all_.add(equation, true, true);
  generated_.rules.push_back({equation, std::move(verdict), std::move(backward), 0});
}

Status Sieve::prove_commutative() {
  for (const OperationKind& kind : options_.operators.operations) {
    if (!kind.commutative) continue;
    const InputKind& input = options_.operators.inputs.front();
    Equation equation;
    for (const char* number : {"1", "2"})
      equation.inputs.push_back({input.letter + number, input.sizes, input.holding, input.sharded_dim});
    const Operation operation{kind.verb, {{-1, 0}, {-1, 1}}, kind.details};
    equation.source = equation.target = {operation};
    std::swap(equation.target[0].operands[0], equation.target[0].operands[1]);
    equation.outputs = {{Operand{0, 0}, Operand{0, 0}}};
    equation.ranks = options_.operators.ranks;
    const rule::Verdict verdict = prove(equation, options_.prove);
    if (!holds_everywhere(verdict))
      return user_error(fmt::format("{} is declared commutative but is not", name(kind.verb)));
    ++generated_.counts.candidates;
    ++generated_.counts.proven;
    commutative_.push_back({std::move(equation), verdict, verdict, 0});
  }
  return {};
}

void Sieve::drop_implied_rules() {
  std::vector<GeneratedRule>& rules = generated_.rules;
  std::stable_sort(rules.begin(), rules.end(), [](const GeneratedRule& a, const GeneratedRule& b) {
    return order_of(a.equation) < order_of(b.equation);
  });
  Theory proven, all;
  std::size_t next = 0;
  for (GeneratedRule& rule : rules) {
    const bool forth = holds_everywhere(rule.verdict);
    if (follows(forth ? proven : all, rule.equation)) {
      ++generated_.counts.pruned_follows;
      continue;
    }
    proven.add(rule.equation, forth, holds_everywhere(rule.backward));
    all.add(rule.equation, true, true);
    if (&rules[next] != &rule) rules[next] = std::move(rule);
    ++next;
  }
  rules.resize(next);
  rules.insert(rules.begin(), commutative_.begin(), commutative_.end());
}

}  // namespace weft::equation
