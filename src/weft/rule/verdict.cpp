#include "weft/rule/verdict.h"

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

bool holds_everywhere(const Verdict& verdict) {
  return verdict.judgement == Judgement::proven || verdict.judgement == Judgement::rounded;
}

bool holds(const Verdict& verdict) {
  return holds_everywhere(verdict) || verdict.judgement == Judgement::guarded;
}

}  // namespace weft::rule
