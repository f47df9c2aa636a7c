// weft/planner/search/distribution/known_plans.h -- a session's in-memory cache of choices and estimates.
//
//   choices      plan, cluster, settings, hints, statistics  ->  the chosen distribution and its search
//   estimates    distributed plan, mesh, machine             ->  the result of its simulation
//
// A second EXPLAIN or TRAIN of the same statement reuses the choice. Similar statements (another
// memory limit, another hint, a model with the same layers) share estimates. Keys are digests of
// everything the result depends on, including statistics, so nothing must be invalidated. The
// oldest entries are evicted. Thread-safe.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/hash.h"
#include "weft/planner/search/distribution/choose_distribution.h"

namespace weft::search {

class KnownPlans {
 public:
  static constexpr std::size_t kMostChoices = 64, kMostEstimates = 20'000;

  std::optional<Evaluation> find_estimate(const Digest& key) const;
  void keep_estimate(const Digest& key, const Evaluation& evaluation);

  // Without the plan, which is remade from the distribution.
  std::shared_ptr<const ChosenDistribution> find_choice(const Digest& key) const;
  void keep_choice(const Digest& key, const ChosenDistribution& choice);

 private:
  template <class Kept>
  struct Shelf {
    std::map<Digest, Kept> kept;
    std::deque<Digest> by_age;

    const Kept* find(const Digest& key) const {
      const auto found = kept.find(key);
      return found == kept.end() ? nullptr : &found->second;
    }
    void keep(const Digest& key, Kept what, std::size_t most) {
      if (!kept.insert_or_assign(key, std::move(what)).second) return;
      by_age.push_back(key);
      if (by_age.size() <= most) return;
      kept.erase(by_age.front());
      by_age.pop_front();
    }
  };

  mutable std::mutex mutex_;
  Shelf<Evaluation> estimates_;
  Shelf<std::shared_ptr<const ChosenDistribution>> choices_;
};

}  // namespace weft::search
