#include "weft/rules/equation/coverage.h"

#include "weft/rules/equation/canonical.h"

namespace weft::equation {
namespace {

// Derivations that a user requests may take longer than those used for pruning.
constexpr Theory::Limits kQuick = {4, 300}, kPatient = {6, 1500};

}  // namespace

std::string_view name(Coverage coverage) {
  switch (coverage) {
    case Coverage::as_it_is: return "as it is";
    case Coverage::more_general: return "more general";
    case Coverage::follows: return "follows";
    case Coverage::missing: return "missing";
  }
  return "missing";
}

CoverageBy::CoverageBy(const std::vector<GeneratedRule>& rules) {
  for (std::size_t k = 0; k < rules.size(); ++k) {
    by_key_.emplace(canonical_key(rules[k].equation), k);
    proven_.add(rules[k].equation, holds_everywhere(rules[k].verdict), holds_everywhere(rules[k].backward));
    all_.add(rules[k].equation, true, true);
  }
}

Covered CoverageBy::cover(const Equation& equation) const {
  const auto found = by_key_.find(canonical_key(equation));
  for (const Theory* theory : {&proven_, &all_}) {
    auto by = theory->derive_minimal(equation, kQuick);
    if (!by) by = theory->derive_minimal(equation, kPatient);
    if (!by) continue;
    const bool under_guard = theory == &all_;
    if (found != by_key_.end()) return {Coverage::as_it_is, under_guard, {found->second}};
    const Coverage how = by->size() <= 1 ? Coverage::more_general : Coverage::follows;
    return {how, under_guard, std::move(*by)};
  }
  if (found != by_key_.end()) return {Coverage::as_it_is, true, {found->second}};
  return {};
}

}  // namespace weft::equation
