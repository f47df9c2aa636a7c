#include "weft/planner/search/distribution/known_plans.h"

namespace weft::search {

std::optional<Evaluation> KnownPlans::find_estimate(const Digest& key) const {
  const std::lock_guard lock(mutex_);
  const Evaluation* found = estimates_.find(key);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void KnownPlans::keep_estimate(const Digest& key, const Evaluation& evaluation) {
  const std::lock_guard lock(mutex_);
  estimates_.keep(key, evaluation, kMostEstimates);
}

std::shared_ptr<const ChosenDistribution> KnownPlans::find_choice(const Digest& key) const {
  const std::lock_guard lock(mutex_);
  const auto* found = choices_.find(key);
  return found == nullptr ? nullptr : *found;
}

void KnownPlans::keep_choice(const Digest& key, const ChosenDistribution& choice) {
  auto kept = std::make_shared<const ChosenDistribution>(choice);
  const std::lock_guard lock(mutex_);
  choices_.keep(key, std::move(kept), kMostChoices);
}

}  // namespace weft::search
