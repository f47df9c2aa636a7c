#include <algorithm>
#include <numeric>

#include "weft/planner/search/distribution/distribution_search.h"

namespace weft::search {
namespace {

using distribute::Distribution;

constexpr std::size_t kStarts = 3;  // seeds to descend from
// Number simulated at once before the rest is compared with the results. Independent of the number
// of processors, so that the result is too.
constexpr std::size_t kTogether = 4;
// A step that gains less than this share ends the descent.
constexpr double kWorthIt = 1e-3;

// Ratios of the time to the best found. A start above kFarBehind is skipped. One that is still
// above kBehind after changing axes is not refined index by index, which gains a few percent.
constexpr double kFarBehind = 1.5, kBehind = 1.15;

constexpr double kAnyTime = std::numeric_limits<double>::infinity();

bool before(const Found& a, const Found& b) { return a.score < b.score; }

class DistributionDescent {
 public:
  DistributionDescent(const DistributionSpace& space, Evaluator& evaluator, const DistributionBudget& budget)
      : space_(space), evaluator_(evaluator), budget_(budget) {}

  SearchOutcome run() {
    std::vector<Distribution> seeds;
    for (const MeshOption& option : space_.meshes()) {
      ++outcome_.meshes;
      std::ranges::move(space_.seeds(option), std::back_inserter(seeds));
    }
    std::vector<Found> starts;
    const auto keep = [&](const Found& found) {
      starts.insert(std::upper_bound(starts.begin(), starts.end(), found, before), found);
      keep_different_meshes(starts);
      return starts.size() == kStarts ? std::optional(starts.back().score) : std::nullopt;
    };
    // Ranking all seeds takes time. With a time limit, first find some plan, on the simplest mesh.
    if (evaluator_.watch().is_limited() && !space_.meshes().empty()) look_for_any();
    look_at(seeds, keep);
    for (Found& start : starts) {
      if (is_behind(start, kFarBehind)) continue;
      Found here = downhill(std::move(start), &DistributionSpace::neighbours);
      while (!is_behind(here, kBehind) && step(here, &DistributionSpace::refinements))
        here = downhill(std::move(here), &DistributionSpace::neighbours);
    }
    outcome_.close(evaluator_);
    return std::move(outcome_);
  }

 private:
  using Around = std::vector<Distribution> (DistributionSpace::*)(const Distribution&) const;

  // Tries one after the other until one fits, regardless of the time limit.
  void look_for_any() {
    until_it_fits_ = true;
    std::vector<Distribution> seeds = space_.seeds(space_.meshes().front());
    std::vector<std::pair<Score, std::size_t>> order;
    for (const Least& least : evaluator_.lower_bounds_of(seeds))
      order.push_back({{least.bytes <= budget_.memory_bytes, least.seconds, least.bytes}, order.size()});
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [hope, seed] : order) {
      const Distribution* const one[] = {&seeds[seed]};
      evaluator_.estimate_all(one);
      if (evaluator_.knows(seeds[seed])) look(seeds[seed]);
      if (!outcome_.best.empty() && outcome_.best.front().score.fits) break;
    }
    until_it_fits_ = false;
    if (!outcome_.best.empty()) tell();
  }

  // REQUIRES: something was found.
  bool is_behind(const Found& found, double times) const {
    const Score& best = outcome_.best.front().score;
    return best.fits && found.score.seconds > times * best.seconds;
  }

  // Keeps the best starts per mesh, so that they differ.
  static void keep_different_meshes(std::vector<Found>& starts) {
    std::vector<Found> kept;
    for (Found& start : starts) {
      const auto same = std::ranges::count_if(
          kept, [&](const Found& other) { return other.distribution.mesh == start.distribution.mesh; });
      if (same < 2 && kept.size() < kStarts) kept.push_back(std::move(start));
    }
    starts = std::move(kept);
  }

  // Keeps known distributions and as many others as the budget allows.
  void keep_within_budget(std::vector<const Distribution*>& batch) {
    std::int64_t room = budget_.estimates - evaluator_.estimates();
    std::erase_if(batch, [&](const Distribution* distribution) {
      if (evaluator_.knows(*distribution) || room-- > 0) return false;
      outcome_.ended = Ended::estimate_limit;
      return true;
    });
  }

  // Evaluates distributions, the most promising first, and passes them to `take`, which may return
  // a new bar. Those that cannot beat the bar are skipped.
  template <class Take>
  void look_at(std::span<const Distribution> distributions, const Take& take,
               std::optional<Score> bar = std::nullopt) {
    std::vector<Score> hopes;
    for (const Least& least : evaluator_.lower_bounds_of(distributions))
      hopes.push_back({least.bytes <= budget_.memory_bytes, least.seconds, least.bytes});
    std::vector<std::size_t> order(distributions.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return hopes[a] < hopes[b]; });
    for (auto next = order.begin(); next != order.end();) {
      std::vector<const Distribution*> batch;
      for (; next != order.end() && batch.size() < kTogether; ++next) {
        if (bar && !(hopes[*next] < *bar)) {
          next = order.end();
          break;
        }
        if (!evaluator_.is_repeated(distributions[*next])) batch.push_back(&distributions[*next]);
      }
      keep_within_budget(batch);
      evaluator_.estimate_all(batch, bar && bar->fits ? bar->seconds : kAnyTime);
      for (const Distribution* distribution : batch) {
        if (!evaluator_.knows(*distribution)) continue;
        if (const std::optional<Found> found = look(*distribution))
          if (const std::optional<Score> higher = take(*found)) bar = higher;
      }
    }
  }

  // REQUIRES: the evaluator knows it.
  std::optional<Found> look(const Distribution& distribution) {
    const Result<Evaluation> evaluation = evaluator_.estimate(distribution);
    if (!evaluation.ok()) {
      if (!outcome_.failure) outcome_.failure = evaluation.error();
      return std::nullopt;
    }
    Found found(distribution, *evaluation, budget_.memory_bytes);
    outcome_.add(found);
    if (!until_it_fits_) tell();
    return found;
  }

  // REQUIRES: something was found.
  void tell() {
    const Score& best = outcome_.best.front().score;
    evaluator_.watch().see(evaluator_.estimates() + evaluator_.ruled_out(), best.fits ? best.seconds : 0);
  }

  // Moves to the best neighbour if it is clearly better.
  bool step(Found& here, Around around) {
    const Score bar{here.score.fits, here.score.seconds * (1 - kWorthIt), here.score.bytes * (1 - kWorthIt)};
    std::optional<Found> next;
    const auto take = [&](const Found& found) {
      if (found.score < (next ? next->score : bar)) next = found;
      return next ? std::optional(next->score) : std::nullopt;
    };
    look_at((space_.*around)(here.distribution), take, bar);
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
  SearchOutcome outcome_;
  bool until_it_fits_ = false;  // ignores the time limit
};

class Descend final : public DistributionStrategy {
 public:
  SearchOutcome search(const DistributionSpace& space, Evaluator& evaluator,
                       const DistributionBudget& budget) const override {
    return DistributionDescent(space, evaluator, budget).run();
  }
};

}  // namespace

std::string_view name(Ended ended) {
  switch (ended) {
    case Ended::settled: return "no neighbor was more than 0.1 % better";
    case Ended::estimate_limit: return "reached the limit of estimates";
    case Ended::time_limit: return "out of time";
    case Ended::interrupted: return "interrupted";
  }
  return {};
}

void SearchOutcome::add(const Found& found) {
  constexpr std::size_t kMost = 8, kMostOfAMesh = 3;
  if (std::ranges::find(best, found.distribution, &Found::distribution) != best.end()) return;
  const auto place = std::upper_bound(best.begin(), best.end(), found, before);
  if (place == best.begin()) {
    Improvement step{{}, print(found.distribution), {}, found.score};
    if (!best.empty()) {
      step.from = print(best.front().distribution);
      step.before = best.front().score;
    }
    trail.push_back(std::move(step));
  }
  best.insert(place, found);
  std::size_t of_mesh = 0;
  std::erase_if(best, [&](const Found& one) {
    return one.distribution.mesh == found.distribution.mesh && ++of_mesh > kMostOfAMesh;
  });
  if (best.size() > kMost) best.pop_back();
}

void SearchOutcome::close(Evaluator& evaluator) {
  estimates = evaluator.estimates();
  failed = evaluator.failures();
  ruled_out = evaluator.ruled_out();
  SearchWatch& watch = evaluator.watch();
  if (watch.over()) ended = watch.was_interrupted() ? Ended::interrupted : Ended::time_limit;
}

const DistributionStrategy& descend() {
  static const Descend strategy;
  return strategy;
}

}  // namespace weft::search
