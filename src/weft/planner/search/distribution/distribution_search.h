// weft/planner/search/distribution/distribution_search.h -- interface of distribution search strategies.
//
//   descend     descend from the best seeds of all meshes, first axis by axis, then index by index
//   by_parts    the same, then dynamic programming over the parts of the model
//
// A strategy uses only the space and the evaluator. It is deterministic unless it is interrupted or
// has a time limit. It reports why it ended.
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
  double memory_bytes = std::numeric_limits<double>::infinity();  // limit per rank
};

enum class Ended : std::uint8_t { settled, estimate_limit, time_limit, interrupted };
std::string_view name(Ended ended);  // "out of time"

// Those that fit first, by time; then the others, by memory.
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

// A change that improved the best plan.
struct Improvement {
  std::string from, to;  // distributions as text; `from` is empty for the first
  Score before, after;
};

struct SearchOutcome {
  std::vector<Found> best;  // sorted, distinct, a few per mesh
  std::vector<Improvement> trail;
  Ended ended = Ended::settled;
  std::int64_t estimates = 0, failed = 0, meshes = 0;
  std::int64_t ruled_out = 0;    // by a lower bound, without an estimate
  std::optional<Error> failure;  // the first evaluation that failed
  // Result of dynamic programming over parts: "194 parts of 4 kinds, 173 estimates of parts:
  // nothing better than the listed plans". Empty if it was not run.
  std::string parts;

  // Inserts it among the best, and into the trail if it is the best.
  void add(const Found& found);
  // Copies the evaluator's counters, and from its watch why the search ended early, if it did.
  void close(Evaluator& evaluator);
};

class DistributionStrategy {
 public:
  virtual ~DistributionStrategy() = default;
  virtual SearchOutcome search(const DistributionSpace& space, Evaluator& evaluator,
                               const DistributionBudget& budget) const = 0;
};

// Static objects that are never freed.
const DistributionStrategy& descend();
const DistributionStrategy& by_parts();

}  // namespace weft::search
