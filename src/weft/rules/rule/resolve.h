// weft/rules/rule/resolve.h -- gives the names of a written rule their meaning.
#pragma once
#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"
#include "weft/rules/rule/syntax.h"

namespace weft::rule {

// Which side is the left: a rule that holds both ways is resolved once each way.
enum class Way : std::uint8_t { forward, reverse };

// The rule, or its first mistake with the place. Every name the right side uses is bound by the left, and
// every list of indices that can be known is filled in.
Result<Rule> resolve(const syntax::Rule& rule, std::span<const syntax::Guard> guards, Way way,
                     const plan::OperatorSet& operators);

}  // namespace weft::rule
