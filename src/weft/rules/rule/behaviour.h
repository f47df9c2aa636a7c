// weft/rules/rule/behaviour.h -- what a rule's operators do, as one number.
//
// Both sides are run over the field on a few fixed instances of the rule, on a mesh where it speaks of one,
// and every number that comes out goes into the hash, with the names, attributes and defaults of the
// operators. An operator whose formula, typing or layout changed gives another number.
#pragma once
#include "weft/base/hash.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

Digest behaviour(const Rule& rule);

}  // namespace weft::rule
