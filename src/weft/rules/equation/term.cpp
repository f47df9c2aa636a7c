#include "weft/rules/equation/term.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "weft/base/hash.h"
#include "weft/rules/equation/canonical.h"

namespace weft::equation {

std::int32_t reached_together(const Term& a, const Term& b) {
  std::int32_t shared = 0;
  for (std::size_t i = 0, j = 0; i < a.reached && j < b.reached;) {
    if (a.nodes[i] == b.nodes[j])
      ++shared, ++i, ++j;
    else if (a.nodes[i] < b.nodes[j])
      ++i;
    else
      ++j;
  }
  return a.reached + b.reached - shared;
}

std::size_t TermTable::KeyHash::operator()(const Key& key) const {
  return mix(multiply_fold(
      key.head_and_result + 0x9e3779b97f4a7c15u,
      (static_cast<std::uint64_t>(key.operands[0]) << 32 | key.operands[1]) ^ 0xc2b2ae3d27d4eb4fu));
}

TermTable::TermTable(const OperatorSet& set, std::span<const std::uint32_t> input_types) : set_(set) {
  for (std::size_t k = 0; k < set_.inputs.size(); ++k) {
    std::uint64_t mask = 0;
    for (std::int32_t n = 0; n < set_.inputs[k].count; ++n) {
      kinds_.push_back(static_cast<std::uint16_t>(k));
      mask |= std::uint64_t{1} << inputs_++;
    }
    kind_masks_.push_back(mask);
    if (set_.inputs[k].weight) weights_ |= mask;
  }
  for (std::uint16_t input = 0; input < inputs_; ++input) {
    const std::uint32_t type = input_types[kinds_[input]];
    add(make(input, 0, {kNoTerm, kNoTerm}), {type, type});
  }
}

Term TermTable::make(std::uint16_t head, std::uint8_t result, std::array<TermId, 2> operands) const {
  Term term;
  term.head = head;
  term.result = result;
  if (is_input(head)) {
    term.inputs = std::uint64_t{1} << head;
    term.alike = kind_of(head).holding == Holding::single || kind_of(head).holding == Holding::replicated;
    return term;
  }
  const OperationKind& kind = operation(head);
  if (kind.commutative && compare(operands[1], operands[0]) < 0) std::swap(operands[0], operands[1]);
  term.operands = operands;
  term.has_split = kind.results > 1;
  std::array<TermId, 2 * kMostOperators> all{};
  std::size_t count = 0;
  for (const TermId id : operands) {
    if (id == kNoTerm) continue;
    const Term& operand = terms_[id];
    term.weight = static_cast<std::uint16_t>(term.weight + operand.weight);
    term.inputs |= operand.inputs;
    term.has_split = term.has_split || operand.has_split;
    term.alike = term.alike && operand.alike;
    count = static_cast<std::size_t>(
        std::copy_n(operand.nodes.begin(), operand.reached, all.begin() + count) - all.begin());
  }
  term.alike = is_alike(kind.verb, kind.details, term.alike);
  std::sort(all.begin(), all.begin() + count);
  count = static_cast<std::size_t>(std::unique(all.begin(), all.begin() + count) - all.begin());
  term.reached = static_cast<std::uint8_t>(std::min<std::size_t>(count, kMostOperators) + 1);
  if (count < kMostOperators) std::copy_n(all.begin(), count, term.nodes.begin());
  return term;
}

TermId TermTable::find(const Term& term) const {
  const auto found = ids_.find(key_of(term));
  return found == ids_.end() ? kNoTerm : found->second;
}

TermId TermTable::add(const Term& term, std::array<std::uint32_t, 2> types) {
  if (const TermId id = find(term); id != kNoTerm) return id;
  const TermId first = static_cast<TermId>(terms_.size());
  const std::int32_t results = is_input(term.head) ? 1 : operation(term.head).results;
  for (std::int32_t k = 0; k < results; ++k) {
    Term stored = term;
    stored.result = static_cast<std::uint8_t>(k);
    stored.type = types[static_cast<std::size_t>(k)];
    // Ids are ascending, so the newest node comes last.
    if (!is_input(term.head) && stored.reached <= kMostOperators) stored.nodes[stored.reached - 1u] = first;
    ids_.emplace(key_of(stored), first + static_cast<TermId>(k));
    terms_.push_back(stored);
  }
  return first + term.result;
}

void TermTable::shrink(std::size_t size) {
  while (terms_.size() > size) {
    ids_.erase(key_of(terms_.back()));
    terms_.pop_back();
  }
}

std::strong_ordering TermTable::compare(TermId a, TermId b) const {
  if (a == b) return std::strong_ordering::equal;
  return compare(terms_[a], terms_[b]);
}

std::strong_ordering TermTable::compare(const Term& a, const Term& b) const {
  if (const auto order = a.weight <=> b.weight; order != 0) return order;
  if (const auto order = a.head <=> b.head; order != 0) return order;
  if (const auto order = a.result <=> b.result; order != 0) return order;
  for (std::size_t i = 0; i < a.operands.size(); ++i) {
    if (a.operands[i] == b.operands[i]) continue;
    return compare(a.operands[i], b.operands[i]);  // the same head, so both have this operand
  }
  return std::strong_ordering::equal;
}

bool TermTable::in_order(std::uint64_t inputs) const {
  for (const std::uint64_t mask : kind_masks_) {
    const std::uint64_t used = (inputs & mask) >> std::countr_zero(mask);
    if ((used & (used + 1)) != 0) return false;
  }
  return true;
}

bool TermTable::has_roles(std::uint16_t head, std::array<TermId, 2> operands) const {
  if (!operation(head).second_is_weight) return true;
  const auto of_weights = [&](TermId id) { return (terms_[id].inputs & ~weights_) == 0; };
  return of_weights(operands[1]) && (!of_weights(operands[0]) || terms_[operands[0]].inputs == 0);
}

bool TermTable::is_closed(TermId id) const { return is_closed(terms_[id]); }

bool TermTable::is_closed(const Term& term) const {
  if (!term.has_split) return true;
  // Results used, by node. The term's own node may not be stored yet, so it is handled separately.
  std::array<std::uint8_t, kMostOperators + 1> used{};
  const auto reached = term.reaches();
  const auto use = [&](TermId operand) {
    if (operand == kNoTerm || is_input(terms_[operand].head)) return;
    const Term& from = terms_[operand];
    const TermId node = operand - from.result;
    const auto place = std::find(reached.begin(), reached.end(), node);
    used[static_cast<std::size_t>(place - reached.begin())] |= static_cast<std::uint8_t>(1u << from.result);
  };
  for (const TermId operand : term.operands) use(operand);
  for (std::size_t i = 0; i + 1 < reached.size(); ++i)
    for (const TermId operand : terms_[reached[i]].operands) use(operand);
  if (operation(term.head).results > 1) return false;
  for (std::size_t i = 0; i + 1 < reached.size(); ++i) {
    const std::int32_t results = operation(terms_[reached[i]].head).results;
    if (used[i] != (1u << results) - 1) return false;
  }
  return true;
}

std::int64_t TermTable::bytes() const {
  constexpr std::size_t kPerEntry = sizeof(Key) + sizeof(TermId) + 3 * sizeof(void*);  // of the hash map
  return static_cast<std::int64_t>(terms_.capacity() * sizeof(Term) + ids_.size() * kPerEntry);
}

}  // namespace weft::equation
