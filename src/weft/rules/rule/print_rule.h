// weft/rules/rule/print_rule.h -- prints parts of a rule.
#pragma once
#include <string>

#include "weft/rules/rule/rule.h"

namespace weft::rule {

std::string print(const Number& number, const Rule& rule);        // size(v, n) + 1
std::string print(const Condition& condition, const Rule& rule);  // size(v, n) <= 4096

}  // namespace weft::rule
