// weft/rules/rule/resolve.h -- resolves the names of a parsed rule.
#pragma once
#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"
#include "weft/rules/rule/syntax.h"

namespace weft::rule {

// Which side becomes the left: a rule that holds both ways is resolved once per direction.
enum class Way : std::uint8_t { forward, reverse };

// The rule, or its first mistake with its location. Every name the right side uses is bound by the
// left, and index lists are inferred where possible.
Result<Rule> resolve(const syntax::Rule& rule, std::span<const syntax::Guard> guards, Way way,
                     const plan::OperatorSet& operators);

}  // namespace weft::rule
