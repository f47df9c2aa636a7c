#include "weft/planner/search/rewrite/rules_to_prove.h"

#include <algorithm>

namespace weft::search {

bool RulesToProve::prove_used(std::span<const Step> trail) {
  bool all = true;
  for (const Step& step : trail) {
    const auto at = std::ranges::find(rules_, step.rule, &rule::Rule::name);
    // Merging of equal nodes is a step without a rule.
    if (at == rules_.end() || std::ranges::find(proven_, step.rule) != proven_.end()) continue;
    std::optional<rule::Rule> found = prove_(*at);
    if (!found) {
      rules_.erase(at);
      all = false;
      continue;
    }
    all &= found->when == at->when;
    *at = std::move(*found);
    proven_.push_back(step.rule);
  }
  return all;
}

}  // namespace weft::search
