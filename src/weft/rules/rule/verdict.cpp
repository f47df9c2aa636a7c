#include "weft/rules/rule/verdict.h"

#include <fmt/format.h>

namespace weft::rule {

std::string_view name(Judgement judgement) {
  switch (judgement) {
    case Judgement::proven: return "proven";
    case Judgement::rounded: return "proven up to rounding";
    case Judgement::guarded: return "guarded";
    case Judgement::refuted: return "refuted";
    case Judgement::ill_typed: return "ill-typed";
    case Judgement::undecided: return "undecided";
  }
  return "ill-typed";
}

std::string_view name(Rounding rounding) {
  switch (rounding) {
    case Rounding::exact: return "exact";
    case Rounding::reassociates: return "reassociates";
    case Rounding::changes: return "changes";
  }
  return "changes";
}

std::string print(const FloatRange& range) {
  // Shrink the sampled range slightly, to stay within the true one.
  const auto up = [](double bound) { return 1.05 * bound; };
  const auto down = [](double bound) { return 0.95 * bound; };
  const std::string_view finite = range.finite_only ? "finite numbers, " : "";
  if (range.is_all()) return range.finite_only ? "f32: finite numbers" : "";
  if (range.least == 0) return fmt::format("f32: {}magnitudes up to {:.1e}", finite, down(range.most));
  if (range.most == std::numeric_limits<double>::infinity())
    return fmt::format("f32: {}magnitudes from {:.1e}", finite, up(range.least));
  return fmt::format("f32: {}magnitudes {:.1e} to {:.1e}", finite, up(range.least), down(range.most));
}

bool holds_everywhere(const Verdict& verdict) {
  return verdict.judgement == Judgement::proven || verdict.judgement == Judgement::rounded;
}

bool holds(const Verdict& verdict) {
  return holds_everywhere(verdict) || verdict.judgement == Judgement::guarded;
}

}  // namespace weft::rule
