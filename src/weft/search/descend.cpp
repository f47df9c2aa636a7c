#include <algorithm>
#include <chrono>

#include "weft/search/distribution_search.h"

namespace weft::search {
namespace {

using distribute::Distribution;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kStarts = 4;  // seeds that are followed downhill
constexpr double kAny = std::numeric_limits<double>::infinity();

bool before(const Found& a, const Found& b) { return a.score < b.score; }

class Descent {
 public:
  Descent(const DistributionSpace& space, Evaluator& evaluator, const DistributionBudget& budget)
      : space_(space), evaluator_(evaluator), budget_(budget) {}

  SearchOutcome run() {
    std::vector<Distribution> seeds;
    for (const MeshOption& option : space_.meshes()) {
      ++outcome_.meshes;
      std::ranges::move(space_.seeds(option), std::back_inserter(seeds));
    }
    std::vector<Found> starts = look_at(std::move(seeds));
    std::stable_sort(starts.begin(), starts.end(), before);
    keep_different_meshes(starts);
    for (Found& start : starts) {
      Found here = std::move(start);
      do {
        here = downhill(std::move(here), &DistributionSpace::neighbours);
      } while (step(here, &DistributionSpace::refinements));
    }
    outcome_.estimates = evaluator_.estimates();
    outcome_.failed = evaluator_.failures();
    outcome_.ruled_out = evaluator_.ruled_out();
    return std::move(outcome_);
  }

 private:
  using Around = std::vector<Distribution> (DistributionSpace::*)(const Distribution&) const;

  // The best seed of a mesh stands for it, so that the starts are not all of one kind.
  static void keep_different_meshes(std::vector<Found>& starts) {
    std::vector<Found> kept;
    for (Found& start : starts) {
      const auto same = std::ranges::count_if(
          kept, [&](const Found& other) { return other.distribution.mesh == start.distribution.mesh; });
      if (same < 2 && kept.size() < kStarts) kept.push_back(std::move(start));
    }
    starts = std::move(kept);
  }

  bool spent() {
    if (evaluator_.estimates() >= budget_.estimates) outcome_.ended = Ended::estimate_limit;
    if (std::chrono::duration<double>(Clock::now() - began_).count() > budget_.seconds)
      outcome_.ended = Ended::time_limit;
    return outcome_.ended != Ended::settled;
  }

  // Those that could be evaluated, in order.
  std::vector<Found> look_at(std::vector<Distribution> distributions, double ceiling = kAny) {
    evaluator_.estimate_all(distributions, budget_.estimates - evaluator_.estimates(), ceiling);
    std::vector<Found> all;
    for (Distribution& distribution : distributions) {
      if (evaluator_.rules_out(distribution, ceiling)) continue;
      if (std::optional<Found> found = look(std::move(distribution))) all.push_back(std::move(*found));
    }
    return all;
  }

  std::optional<Found> look(Distribution distribution) {
    if (spent() && !evaluator_.knows(distribution)) return std::nullopt;
    const Result<Evaluation> evaluation = evaluator_.estimate(distribution);
    if (!evaluation.ok()) {
      if (!outcome_.failure) outcome_.failure = evaluation.error();
      return std::nullopt;
    }
    Found found(std::move(distribution), *evaluation, budget_.memory_bytes);
    outcome_.add(found);
    return found;
  }

  // Moves to the best of those around, if it is better.
  bool step(Found& here, Around around) {
    std::optional<Found> next;
    // What is slower than here is not stepped to, and need not be known exactly.
    const double ceiling = here.score.fits ? here.score.seconds : kAny;
    for (Found& found : look_at((space_.*around)(here.distribution), ceiling))
      if (found.score < (next ? next->score : here.score)) next = std::move(found);
    if (!next) return false;
    here = std::move(*next);
    return true;
  }

  Found downhill(Found here, Around around) {
    while (step(here, around)) {
    }
    return here;
  }

  const DistributionSpace& space_;
  Evaluator& evaluator_;
  const DistributionBudget& budget_;
  const Clock::time_point began_ = Clock::now();
  SearchOutcome outcome_;
};

class Descend final : public DistributionStrategy {
 public:
  SearchOutcome search(const DistributionSpace& space, Evaluator& evaluator,
                       const DistributionBudget& budget) const override {
    return Descent(space, evaluator, budget).run();
  }
};

}  // namespace

std::string_view name(Ended ended) {
  switch (ended) {
    case Ended::settled: return "no neighbour was better";
    case Ended::estimate_limit: return "the limit of estimates was reached";
    case Ended::time_limit: return "the time was up";
  }
  return {};
}

void SearchOutcome::add(const Found& found) {
  constexpr std::size_t kMost = 4;
  const auto place = std::upper_bound(best.begin(), best.end(), found, before);
  if (std::ranges::find(best, found.distribution, &Found::distribution) != best.end()) return;
  if (place == best.begin()) {
    Improvement step{{}, print(found.distribution), {}, found.score};
    if (!best.empty()) {
      step.from = print(best.front().distribution);
      step.before = best.front().score;
    }
    trail.push_back(std::move(step));
  }
  best.insert(place, found);
  if (best.size() > kMost) best.pop_back();
}

const DistributionStrategy& descend() {
  static const Descend strategy;
  return strategy;
}

}  // namespace weft::search
