// weft/rules/rule/tried_sizes.h -- what a rule was tried at, and what is missing.
//
// At size 1 a maximum is a sum and a softmax is 1. So a rule counts as untried if it was tried only
// with single elements, or with only one value of an attribute that its guard does not fix, or if
// it names a number beyond everything drawn, or if one of its quotients was always 0.
#pragma once
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "weft/rules/rule/rule_guard.h"

namespace weft::rule {

struct TriedSizes {
  std::vector<std::int64_t> elements;              // the maximum, by input
  std::vector<std::int64_t> sizes;                 // the maximum, by index variable; 0: none was drawn
  std::vector<std::set<std::int64_t>> attributes;  // the values, by variable
  std::vector<bool> quotients;                     // by division of the rule: whether it was ever nonzero

  // Whether every size that exceeded 1 in `other` does so here.
  bool spreads_like(const TriedSizes& other) const;
  // "x was tried with one element alone"; empty if nothing is missing.
  std::string missing(const Rule& rule) const;
};

TriedSizes tried_of(const Rule& rule, std::span<const JudgedInstance> judged);

}  // namespace weft::rule
