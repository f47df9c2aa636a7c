// weft/rules/rule/mutate_rule.h -- rules with one mistake each, for the test of the prover.
//
//   merge_products, 2nd operator of the right: its operands swapped
//
// A mistake is what a slip of the pen makes: operands swapped, another operator or input, a number one more, another
// of the rule's numbers, a condition left out. Most are false; what is not, a run in floats must show harmless.
#pragma once
#include <string>
#include <vector>

#include "weft/rules/rule/rule.h"

namespace weft::rule {

struct MutatedRule {
  Rule rule;
  std::string what;
};

// All of them, in a fixed order. They need not make sense: print one and parse it to see.
std::vector<MutatedRule> mutations_of(const Rule& rule);

}  // namespace weft::rule
