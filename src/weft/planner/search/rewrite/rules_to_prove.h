// weft/planner/search/rewrite/rules_to_prove.h -- rules that are proven when a search wants to use them.
//
//   RulesToProve rules(shipped, prove);
//   do found = search(plan, rules.rules());          // with what is not proven yet, on trial
//   while (!rules.prove_used(found.trail));          // a rule was refused or got a guard: again, without it
//
// Proving all rules takes longer than planning; a plan uses a handful. No plan leaves the loop that a rule
// made which is not proven.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/planner/search/rewrite/trail.h"
#include "weft/rules/rule/rule.h"

namespace weft::search {

// The rule as it may fire, with the guard that its proof wants; nothing where it is not proven.
using ProveRule = std::function<std::optional<rule::Rule>(const rule::Rule& rule)>;

class RulesToProve {
 public:
  // REQUIRES: `prove` outlives it.
  RulesToProve(std::vector<rule::Rule> rules, const ProveRule& prove)
      : rules_(std::move(rules)), prove_(prove) {}

  std::span<const rule::Rule> rules() const { return rules_; }

  // True when all rules of the trail are proven as they are. False when they have changed: what is refused is
  // gone, what needs a guard has it.
  bool prove_used(std::span<const Step> trail);

 private:
  std::vector<rule::Rule> rules_;
  const ProveRule& prove_;
  std::vector<std::string> proven_;  // by name
};

}  // namespace weft::search
