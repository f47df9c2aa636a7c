// weft/rules/rule/behaviour.h -- a hash of the behaviour of a rule's operators.
//
// Both sides run over the field on a few fixed instances of the rule, on a mesh if the rule uses
// one. The hash covers every resulting number, and the names, attributes and defaults of the
// operators. So it changes if an operator's formula, typing or layout changes.
#pragma once
#include "weft/base/hash.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

Digest behaviour(const Rule& rule);

}  // namespace weft::rule
