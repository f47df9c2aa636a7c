#include "weft/rules/equation/term_rules.h"

#include <utility>

namespace weft::equation {

bool build(const TermTable& terms, Meaning& meaning, std::uint16_t head, std::uint8_t result,
           std::array<TermId, 2> operands, Term& term, std::array<TypeId, 2>& types) {
  std::array<TypeId, 2> of = {kNoType, kNoType};
  for (std::size_t i = 0; i < of.size(); ++i)
    if (operands[i] != kNoTerm) of[i] = terms[operands[i]].type;
  const Signature& signature = meaning.apply(head - terms.inputs(), of);
  if (!signature.legal()) return false;
  types = signature.results;
  term = terms.make(head, result, operands);
  term.type = types[result];
  return true;
}

TermRules::TermRules(TermTable& terms, Meaning& meaning, std::span<const TypeId> input_types)
    : terms_(terms), meaning_(meaning), patterns_(terms.set(), input_types) {
  by_head_.resize(2 * (terms.inputs() + terms.set().operations.size()));
}

TermId TermRules::copy(TermId id) {
  const Term& term = terms_[id];
  if (terms_.is_input(term.head)) return id;
  std::array<TermId, 2> operands = {kNoTerm, kNoTerm};
  for (std::size_t i = 0; i < term.operand_count(); ++i) operands[i] = copy(term.operands[i]);
  return patterns_.add(patterns_.make(term.head, term.result, operands), {term.type, term.type});
}

void TermRules::add(TermId from, TermId to, bool same_joints) {
  const Term& left = terms_[from];
  if (terms_.is_input(left.head) || (terms_[to].inputs & ~left.inputs) != 0) return;
  by_head_[2u * left.head + left.result].push_back({copy(from), copy(to), same_joints});
  ++count_;
}

TermRules::Effect TermRules::effect(Term term) {
  Effect effect = Effect::none;
  for (const Pattern& rule : by_head_[2u * term.head + term.result]) {
    if (effect == Effect::at_root && !rule.same_joints) continue;
    bindings_.fill(kNoTerm);
    if (!solve_operands({}, patterns_[rule.from], term, rule, term)) continue;
    if (rule.same_joints) return Effect::everywhere;
    effect = Effect::at_root;
  }
  return effect;
}

// Matches the remaining pairs on a stack. Tries both orders of commutative operations and undoes
// bindings on backtracking.
bool TermRules::solve(Pending pending, const Pattern& rule, const Term& subject) {
  if (pending.count == 0) return shrinks(rule, subject);
  const auto [pattern, candidate] = pending.pairs[--pending.count];
  const Term& left = patterns_[pattern];
  if (patterns_.is_input(left.head)) {
    TermId& binding = bindings_[left.head];
    if (binding != kNoTerm) return binding == candidate && solve(pending, rule, subject);
    if (patterns_.kind_of(left.head).holding == Holding::replicated && !terms_[candidate].alike) return false;
    binding = candidate;
    if (solve(pending, rule, subject)) return true;
    binding = kNoTerm;
    return false;
  }
  const Term right = terms_[candidate];
  return left.head == right.head && left.result == right.result &&
         solve_operands(pending, left, right, rule, subject);
}

bool TermRules::solve_operands(const Pending& pending, const Term& left, const Term& right,
                               const Pattern& rule, const Term& subject) {
  const std::size_t count = right.operand_count();
  if (pending.count + count > pending.pairs.size()) return false;
  const std::size_t orders = terms_.operation(right.head).commutative ? 2 : 1;
  for (std::size_t order = 0; order < orders; ++order) {
    Pending more = pending;
    for (std::size_t i = 0; i < count; ++i)
      more.pairs[more.count++] = {left.operands[i], right.operands[order == 0 ? i : 1 - i]};
    if (solve(more, rule, subject)) return true;
  }
  return false;
}

bool TermRules::shrinks(const Pattern& rule, const Term& subject) {
  const std::size_t mark = terms_.size();
  TermId made = kNoTerm;
  const bool legal = instantiate(rule.to, made);
  const bool smaller = legal && meaning_.same_sizes(terms_[made].type, subject.type) &&
                       terms_.compare(terms_[made], subject) < 0;
  terms_.shrink(mark);
  return smaller;
}

bool TermRules::instantiate(TermId pattern, TermId& made) {
  const Term& term = patterns_[pattern];
  if (patterns_.is_input(term.head)) {
    made = bindings_[term.head];
    return true;
  }
  std::array<TermId, 2> operands = {kNoTerm, kNoTerm};
  for (std::size_t i = 0; i < term.operand_count(); ++i)
    if (!instantiate(term.operands[i], operands[i])) return false;
  Term built;
  std::array<TypeId, 2> types{};
  if (!build(terms_, meaning_, term.head, term.result, operands, built, types)) return false;
  made = terms_.add(built, types);
  return true;
}

}  // namespace weft::equation
