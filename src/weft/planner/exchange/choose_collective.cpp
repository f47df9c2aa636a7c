#include "weft/planner/exchange/choose_collective.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/predict/sim/collective/fit.h"

namespace weft::exchange {
namespace {

constexpr std::size_t kMostRunnersUp = 2;
constexpr std::size_t kMostCandidates = 4096;
constexpr std::size_t kMostSizes = 65536;
constexpr double kNearlyEqual = 1.02;  // noise between two measurements
constexpr double kClearlyMore = 1.05;  // smaller ratios of two facts do not explain a difference in time

// An impossible time counts as infinite.
double seconds_of(const CollectiveCandidate& candidate, std::int64_t bytes) {
  const double seconds = candidate.seconds ? candidate.seconds(bytes) : 0;
  return seconds > 0 ? seconds : std::numeric_limits<double>::infinity();
}

std::optional<std::size_t> winner(std::span<const CollectiveCandidate> candidates, std::int64_t bytes) {
  std::optional<std::size_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double seconds = seconds_of(candidates[i], bytes);
    if (seconds < least) {
      least = seconds;
      best = i;
    }
  }
  return best;
}

bool clearly_more(double a, double b) { return b > 0 && a > b * kClearlyMore; }

std::string latency_reason(const CollectiveFacts& best, const CollectiveFacts& next) {
  if (clearly_more(next.steps, best.steps))
    return fmt::format("latency-bound: {:g} step{} against {:g}", best.steps, best.steps == 1 ? "" : "s",
                       next.steps);
  // LL sends a flag with every word, LL128 with every line, and Simple after a fence.
  constexpr auto kWaiting = [](collective::Protocol protocol) {
    return protocol == collective::Protocol::ll ? 0 : protocol == collective::Protocol::ll128 ? 1 : 2;
  };
  if (kWaiting(best.protocol) < kWaiting(next.protocol))
    return fmt::format("latency-bound: messages of {} arrive sooner than those of {}", name(best.protocol),
                       name(next.protocol));
  return {};
}

std::string bandwidth_reason(const CollectiveFacts& best, const CollectiveFacts& next) {
  if (clearly_more(next.wire, best.wire))
    return fmt::format("bandwidth-bound: sends {:.3g}x the buffer against {:.3g}x", best.wire, next.wire);
  constexpr auto kFlags = [](collective::Protocol protocol) {
    return protocol == collective::Protocol::ll ? 2 : protocol == collective::Protocol::ll128 ? 1 : 0;
  };
  if (kFlags(best.protocol) < kFlags(next.protocol))
    return fmt::format("bandwidth-bound: {} sends fewer flags with the data than {}", name(best.protocol),
                       name(next.protocol));
  if (next.channels > 0 && best.channels > next.channels)
    return fmt::format("bandwidth-bound: {} channels against {}", best.channels, next.channels);
  return {};
}

// How time grows with size over the range: 0 for constant time, 1 for proportional.
double elasticity(const CollectiveCandidate& candidate, std::int64_t low, std::int64_t high) {
  if (low == high) {
    low = std::max<std::int64_t>(low / 2, 1);
    high = high <= std::numeric_limits<std::int64_t>::max() / 2 ? high * 2 : high;
  }
  const double grown = std::log(static_cast<double>(high) / static_cast<double>(low));
  const double slower = std::log(seconds_of(candidate, high) / seconds_of(candidate, low));
  return std::isfinite(slower) && grown > 0 ? slower / grown : 0.5;
}

std::string explain(std::span<const CollectiveCandidate> candidates, const CollectiveRange& range) {
  if (range.runners_up.empty()) return "no other algorithm can run it";
  const CollectiveCandidate& best = candidates[range.best];
  const CollectiveCandidate& next = candidates[range.runners_up[0].candidate];
  if (range.runners_up[0].ratio < kNearlyEqual) return fmt::format("as good as {}", next.name);
  const bool latency_bound =
      elasticity(best, std::max<std::int64_t>(range.min_bytes, 1), range.max_bytes) < 0.5;
  const std::string latency = latency_reason(best.facts, next.facts);
  const std::string bandwidth = bandwidth_reason(best.facts, next.facts);
  for (const std::string& reason : {latency_bound ? latency : bandwidth, latency_bound ? bandwidth : latency})
    if (!reason.empty()) return reason;
  return "it uses the links better: the two have equal steps and bytes sent";
}

void rank_the_others(std::span<const CollectiveCandidate> candidates, std::span<const std::int64_t> sizes,
                     CollectiveRange& range) {
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i == range.best) continue;
    double logs = 0;
    for (const std::int64_t bytes : sizes)
      logs += std::log(seconds_of(candidates[i], bytes) / seconds_of(candidates[range.best], bytes));
    const double ratio = std::exp(logs / static_cast<double>(sizes.size()));
    if (std::isfinite(ratio)) range.runners_up.push_back({i, ratio});
  }
  std::ranges::stable_sort(range.runners_up, {}, &RunnerUp::ratio);
  std::vector<RunnerUp> kept;
  for (const RunnerUp& one : range.runners_up) {
    const auto akin = [&](std::size_t other) {
      return !candidates[other].family.empty() &&
             candidates[other].family == candidates[one.candidate].family;
    };
    if (kept.size() == kMostRunnersUp) break;
    if (!akin(range.best) && std::ranges::none_of(kept, akin, &RunnerUp::candidate)) kept.push_back(one);
  }
  range.runners_up = std::move(kept);
}

// Bisects for the largest size in [low, high) at which `best` still wins.
std::int64_t last_win(std::span<const CollectiveCandidate> candidates, std::optional<std::size_t> best,
                      std::int64_t low, std::int64_t high) {
  while (high - low > 1) {
    const std::int64_t middle = std::midpoint(low, high);
    (winner(candidates, middle) == best ? low : high) = middle;
  }
  return low;
}

Status check_question(std::span<const CollectiveCandidate> candidates, std::span<const std::int64_t> sizes) {
  if (candidates.empty() || candidates.size() > kMostCandidates)
    return user_error(fmt::format("expected 1 to {} algorithms to choose from, found {}", kMostCandidates,
                                  candidates.size()));
  if (sizes.empty() || sizes.size() > kMostSizes)
    return user_error(fmt::format("expected 1 to {} sizes, found {}", kMostSizes, sizes.size()));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] < 0 || (i > 0 && sizes[i] <= sizes[i - 1]))
      return user_error(fmt::format("expected ascending sizes, found {} at position {}", sizes[i], i));
  return {};
}

}  // namespace

CollectiveCandidate tabled(std::string name, const CollectiveFacts& facts,
                           std::span<const std::int64_t> sizes, std::span<const double> seconds) {
  WEFT_CHECK(!sizes.empty() && sizes.size() == seconds.size());
  std::vector<sim::Measurement> points;
  for (std::size_t i = 0; i < sizes.size(); ++i) points.push_back({sizes[i], seconds[i]});
  return {
      .name = std::move(name), .facts = facts, .seconds = [points = std::move(points)](std::int64_t bytes) {
        const bool known = bytes >= points.front().bytes && bytes <= points.back().bytes;
        return known ? sim::interpolate(points, static_cast<double>(bytes))
                     : std::numeric_limits<double>::infinity();
      }};
}

Result<CollectiveChoice> choose_collective(std::span<const CollectiveCandidate> candidates,
                                           std::span<const std::int64_t> sizes) {
  WEFT_TRY_STATUS(check_question(candidates, sizes));
  CollectiveChoice choice;
  std::int64_t begin = sizes[0];
  for (std::size_t first = 0, end = 0; first < sizes.size(); first = end) {
    const std::optional<std::size_t> best = winner(candidates, sizes[first]);
    for (end = first + 1; end < sizes.size() && winner(candidates, sizes[end]) == best;) ++end;
    const std::int64_t last =
        end < sizes.size() ? last_win(candidates, best, sizes[end - 1], sizes[end]) : sizes.back();
    if (best) {
      CollectiveRange range{
          .min_bytes = begin, .max_bytes = last, .best = *best, .runners_up = {}, .why = {}};
      rank_the_others(candidates, sizes.subspan(first, end - first), range);
      range.why = explain(candidates, range);
      choice.ranges.push_back(std::move(range));
    }
    begin = last + 1;
  }
  if (choice.ranges.empty())
    return user_error(fmt::format("none of the algorithms can run any of the sizes: {} to {} bytes",
                                  sizes.front(), sizes.back()));
  return choice;
}

}  // namespace weft::exchange
