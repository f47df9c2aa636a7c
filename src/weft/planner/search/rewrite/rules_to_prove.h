// weft/planner/search/rewrite/rules_to_prove.h -- prove rules on demand, when a search uses them.
//
//   RulesToProve rules(shipped, prove);
//   do found = search(plan, rules.rules());          // includes rules that are not proven yet
//   while (!rules.prove_used(found.trail));          // a rule was refuted or got a guard: search again
//
// Proving all rules takes longer than planning, and a plan uses only a few. The loop ends only with
// a plan made by proven rules.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/planner/search/rewrite/trail.h"
#include "weft/rules/rule/rule.h"

namespace weft::search {

// The rule with the guard that its proof requires; nothing if it cannot be proven.
using ProveRule = std::function<std::optional<rule::Rule>(const rule::Rule& rule)>;

class RulesToProve {
 public:
  // REQUIRES: `prove` outlives it.
  RulesToProve(std::vector<rule::Rule> rules, const ProveRule& prove)
      : rules_(std::move(rules)), prove_(prove) {}

  std::span<const rule::Rule> rules() const { return rules_; }

  // True if all rules of the trail are proven unchanged. Otherwise updates them: removes refuted
  // rules and adds required guards.
  bool prove_used(std::span<const Step> trail);

 private:
  std::vector<rule::Rule> rules_;
  const ProveRule& prove_;
  std::vector<std::string> proven_;  // by name
};

}  // namespace weft::search
