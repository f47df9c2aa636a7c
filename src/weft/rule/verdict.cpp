#include "weft/rule/verdict.h"

namespace weft::rule {

std::string_view name(Judgement judgement) {
  switch (judgement) {
    case Judgement::proven: return "proven";
    case Judgement::guarded: return "guarded";
    case Judgement::refuted: return "refuted";
    case Judgement::ill_typed: return "ill-typed";
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

}  // namespace weft::rule
