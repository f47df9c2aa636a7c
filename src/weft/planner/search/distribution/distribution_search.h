// weft/planner/search/distribution/distribution_search.h -- a way to look for the best distribution: one interface, a file each.
//
//   descend     from the best seeds of all meshes downhill, first axis by axis, then index by index
//   by_parts    the same, and then, part by part of the model, what is better done otherwise there
//
// A strategy sees the space and the evaluator and nothing else. It is deterministic unless it is interrupted or
// a limit of seconds is set, and says why it stopped.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "weft/planner/search/distribution/distribution_space.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

struct DistributionBudget {
  std::int64_t estimates = 1000;
  double seconds = std::numeric_limits<double>::infinity();
  double memory_bytes = std::numeric_limits<double>::infinity();  // that a rank may take
};

enum class Ended : std::uint8_t { settled, estimate_limit, time_limit, interrupted };
std::string_view name(Ended ended);  // "no neighbor was better"

// Those that fit come before those that do not; then the faster, or the smaller.
struct Score {
  bool fits = false;
  double seconds = std::numeric_limits<double>::infinity();
  double bytes = std::numeric_limits<double>::infinity();

  friend bool operator<(const Score& a, const Score& b) {
    if (a.fits != b.fits) return a.fits;
    if (!a.fits && a.bytes != b.bytes) return a.bytes < b.bytes;
    return a.seconds < b.seconds;
  }
};

struct Found {
  distribute::Distribution distribution;
  Evaluation evaluation;
  Score score;

  Found(distribute::Distribution what, const Evaluation& cost, double memory_bytes)
      : distribution(std::move(what)),
        evaluation(cost),
        score{cost.peak_bytes <= memory_bytes, cost.seconds, cost.peak_bytes} {}
};

// A change that made the best found better.
struct Improvement {
  std::string from, to;  // distributions as text; `from` is empty for the first
  Score before, after;
};

struct SearchOutcome {
  std::vector<Found> best;  // ascending, distinct, a few of each mesh
  std::vector<Improvement> trail;
  Ended ended = Ended::settled;
  std::int64_t estimates = 0, failed = 0, meshes = 0;
  std::int64_t ruled_out = 0;    // besides the estimates: by what they compute and move at least
  std::optional<Error> failure;  // of the first that could not be evaluated
  // What dynamic programming along the parts did: "4 kinds of 194 parts, 173 estimates of parts: nothing
  // better". Empty where it was not tried.
  std::string parts;

  // Puts it where it belongs among the best, and in the trail where it is the best.
  void add(const Found& found);
  // Takes over what the evaluator has counted, and from its watch why the search ended early, if it did.
  void close(Evaluator& evaluator);
};

class DistributionStrategy {
 public:
  virtual ~DistributionStrategy() = default;
  virtual SearchOutcome search(const DistributionSpace& space, Evaluator& evaluator,
                               const DistributionBudget& budget) const = 0;
};

// Shared by all programs; never freed.
const DistributionStrategy& descend();
const DistributionStrategy& by_parts();

}  // namespace weft::search
