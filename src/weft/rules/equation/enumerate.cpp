#include "weft/rules/equation/enumerate.h"

#include <algorithm>

namespace weft::equation {

Shelf::Shelf(const TermTable& terms, Meaning& meaning) : terms_(terms), meaning_(meaning) {
  levels_.resize(kMostOperators + 1);
  by_type_.resize(kMostOperators + 1);
  types_.resize(kMostOperators + 1);
  for (TermId input = 0; input < terms.inputs(); ++input) put(input);
}

void Shelf::put(TermId id) {
  const Term& term = terms_[id];
  const std::size_t level = term.reached;
  levels_[level].push_back(id);
  auto& bucket = by_type_[level][term.type];
  if (bucket.empty()) types_[level].push_back(term.type);
  bucket.push_back(id);
  for (const TermId node : term.reaches()) users_[node].push_back(id);
  if (shelved_.size() <= id) shelved_.resize(id + 1, false);
  shelved_[id] = true;
}

const std::vector<Shelf::Way>& Shelf::ways(TypeId a, TypeId b) {
  const std::uint64_t key = static_cast<std::uint64_t>(a) << 32 | b;
  const auto [found, fresh] = ways_.try_emplace(key);
  if (!fresh) return found->second;
  const auto& operations = terms_.set().operations;
  for (std::size_t k = 0; k < operations.size(); ++k) {
    if (operations[k].operands != (b == kNoType ? 1 : 2)) continue;
    if (const Signature& signature = meaning_.apply(k, {a, b}); signature.legal())
      found->second.push_back({terms_.head_of(k), false, &signature});
    if (b == kNoType || operations[k].commutative) continue;
    if (const Signature& signature = meaning_.apply(k, {b, a}); signature.legal())
      found->second.push_back({terms_.head_of(k), true, &signature});
  }
  return found->second;
}

void Shelf::apply(TermId a, TermId b, bool in_order, TermSink& sink) {
  const TypeId second = b == kNoTerm ? kNoType : terms_[b].type;
  const std::vector<Way>& possible = ways(terms_[a].type, second);
  if (possible.empty()) return;
  const std::uint64_t inputs = terms_[a].inputs | (b == kNoTerm ? 0 : terms_[b].inputs);
  if (inputs == 0 || (in_order && !terms_.in_order(inputs))) return;  // skip graphs of constants only
  for (const Way& way : possible) {
    if (way.swapped && a == b) continue;
    const std::array<TermId, 2> operands = way.swapped ? std::array{b, a} : std::array{a, b};
    if (terms_.has_roles(way.head, operands)) sink.take(way.head, operands, *way.signature);
  }
}

void Shelf::with_inputs_and_parts(TermId a, bool in_order, TermSink& sink) {
  for (const TermId input : levels_[0]) apply(a, input, in_order, sink);
  const Term term = terms_[a];
  for (const TermId node : term.reaches()) {
    const std::int32_t results = terms_.operation(terms_[node].head).results;
    for (std::int32_t k = 0; k < results; ++k) {
      const TermId part = node + static_cast<TermId>(k);
      // Two results of one operation reach each other's node: use the pair once.
      const bool sibling = part != a && node == a - term.result;
      if (part < shelved_.size() && shelved_[part] && !(sibling && part < a)) apply(a, part, in_order, sink);
    }
  }
}

void Shelf::with_level(TermId a, std::size_t level, std::int32_t together, bool in_order, TermSink& sink) {
  for (const TypeId type : types_[level]) {
    if (ways(terms_[a].type, type).empty()) continue;
    for (const TermId b : by_type_[level][type]) {
      if (terms_[a].reached == level && b <= a) continue;  // use each pair once
      if (reached_together(terms_[a], terms_[b]) == together) apply(a, b, in_order, sink);
    }
  }
}

// Combines `a` with terms that share an operation with it, neither a part of the other.
void Shelf::with_sharers(TermId a, std::int32_t together, bool in_order, TermSink& sink) {
  std::vector<TermId> sharers;
  const Term term = terms_[a];
  for (const TermId node : term.reaches())
    for (const TermId b : users_[node]) {
      const Term& other = terms_[b];
      if (other.reached > term.reached || other.reached >= together ||
          term.reached + other.reached <= together)
        continue;
      if (other.reached == term.reached && b <= a) continue;
      if (reached_together(term, other) == together) sharers.push_back(b);
    }
  std::sort(sharers.begin(), sharers.end());
  sharers.erase(std::unique(sharers.begin(), sharers.end()), sharers.end());
  for (const TermId b : sharers) apply(a, b, in_order, sink);
}

void Shelf::enumerate(std::int32_t level, bool in_order, TermSink& sink) {
  if (level == 1) {
    const auto& operations = terms_.set().operations;
    for (std::size_t k = 0; k < operations.size(); ++k) {
      if (operations[k].operands != 0) continue;
      const Signature& signature = meaning_.apply(k, {kNoType, kNoType});
      if (signature.legal()) sink.take(terms_.head_of(k), {kNoTerm, kNoTerm}, signature);
    }
    const std::vector<TermId> inputs = levels_[0];
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      apply(inputs[i], kNoTerm, in_order, sink);
      for (std::size_t j = i; j < inputs.size(); ++j) apply(inputs[i], inputs[j], in_order, sink);
    }
    sink.progress(1);
    return;
  }
  const std::int32_t together = level - 1;
  double done = 0, all = 0;
  for (std::int32_t k = 1; k <= together; ++k)
    all += static_cast<double>(levels_[static_cast<std::size_t>(k)].size());
  for (std::int32_t k = together; k >= 1; --k) {
    const std::vector<TermId> terms = levels_[static_cast<std::size_t>(k)];
    for (const TermId a : terms) {
      if (k == together) {
        apply(a, kNoTerm, in_order, sink);
        with_inputs_and_parts(a, in_order, sink);
      } else {
        const std::int32_t other = together - k;
        if (other <= k) with_level(a, static_cast<std::size_t>(other), together, in_order, sink);
        with_sharers(a, together, in_order, sink);
      }
      done += 1;
      if (static_cast<std::int64_t>(done) % 256 == 0) sink.progress(done / all);
    }
  }
  sink.progress(1);
}

}  // namespace weft::equation
