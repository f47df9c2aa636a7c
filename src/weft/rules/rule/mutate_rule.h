// weft/rules/rule/mutate_rule.h -- mutation testing of the prover: rules with one mistake each.
//
//   merge_products, 2nd operator of the right: its operands swapped
//
// Mistakes are typical slips: operands swapped, another operator or input, a number off by one,
// another of the rule's numbers, a condition left out. Most mutants are false; for the others, a
// run in floating point must show that they are harmless.
#pragma once
#include <string>
#include <vector>

#include "weft/rules/rule/rule.h"

namespace weft::rule {

struct MutatedRule {
  Rule rule;
  std::string what;
};

// All mutants, in a fixed order. They need not be valid: print one and parse it to check.
std::vector<MutatedRule> mutations_of(const Rule& rule);

}  // namespace weft::rule
