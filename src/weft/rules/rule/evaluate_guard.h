// weft/rules/rule/evaluate_guard.h -- whether a rule's conditions hold at one place of a plan.
#pragma once
#include "weft/rules/rule/evaluate_number.h"

namespace weft::rule {

// False also where a number of the condition is none.
bool holds(const Condition& condition, const Place& place);

// The first condition that does not hold; null when all do.
const Condition* first_that_fails(std::span<const Condition> conditions, const Place& place);

}  // namespace weft::rule
