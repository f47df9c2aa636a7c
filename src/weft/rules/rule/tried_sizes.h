// weft/rules/rule/tried_sizes.h -- what a rule was tried at, and what that leaves out.
//
// At size 1 a maximum is a sum and a softmax is 1. A rule that was tried with single elements alone, or with one value
// of an attribute that its guard does not state, or that names a number beyond all that was drawn, has not been tried;
// nor one of which a quotient was 0 throughout.
#pragma once
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "weft/rules/rule/rule_guard.h"

namespace weft::rule {

struct TriedSizes {
  std::vector<std::int64_t> elements;              // the most, by input
  std::vector<std::int64_t> sizes;                 // the largest, by index variable; 0: none was drawn
  std::vector<std::set<std::int64_t>> attributes;  // the values, by variable
  std::vector<bool> quotients;                     // by division of the rule: whether it was ever more than 0

  // Whether what was larger than 1 there is so here.
  bool spreads_like(const TriedSizes& other) const;
  // "x was tried with one element alone"; empty where nothing is missing.
  std::string missing(const Rule& rule) const;
};

TriedSizes tried_of(const Rule& rule, std::span<const JudgedInstance> judged);

}  // namespace weft::rule
