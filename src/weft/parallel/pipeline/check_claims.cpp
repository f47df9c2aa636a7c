#include "weft/parallel/pipeline/check_claims.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "weft/parallel/pipeline/schedule_cost.h"
#include "weft/parallel/pipeline/verify.h"

namespace weft::pipeline {
namespace {

struct ClaimTimes {
  double forward, backward, weight;
};
// All equal, W short, F long, B long, each side of v_half's formula, and each much longer and much
// shorter than the others: together these tell formulas apart.
constexpr auto kClaimTimes = std::to_array<ClaimTimes>({{1, 1, 1},
                                                        {3, 3, 2},
                                                        {4, 3, 2},
                                                        {3, 4, 2},
                                                        {8, 8, 5},
                                                        {40, 3, 2},
                                                        {3, 40, 2},
                                                        {3, 2, 40},
                                                        {1, 30, 25},
                                                        {30, 1, 25},
                                                        {30, 25, 1}});

bool differs(double claimed, double actual) {
  return !(std::abs(claimed - actual) <= 1e-9 * std::max(1.0, std::abs(actual)));
}

// `claimed`, `peaks`: by stage.
Status check_peak(const ScheduleText& text, const std::vector<double>& claimed,
                  const std::vector<double>& peaks) {
  for (std::size_t stage = 0; stage < peaks.size(); ++stage)
    if (!(peaks[stage] <= claimed[stage] + 1e-9))
      return user_error(fmt::format("PEAK {} is false: {} claimed for stage {}, which holds {}",
                                    text.peak_text, claimed[stage], stage, peaks[stage]));
  const auto most = std::ranges::max_element(peaks);
  const double most_claimed = *std::ranges::max_element(claimed);
  if (differs(most_claimed, *most))
    return user_error(fmt::format("PEAK {} is false: {} claimed, but stage {} holds the most, {}",
                                  text.peak_text, most_claimed, most - peaks.begin(), *most));
  return {};
}

}  // namespace

Result<std::vector<std::string>> check_claims(const ScheduleText& text, const Schedule& schedule,
                                              const std::map<std::string, double>& parameters) {
  const std::vector<double> peaks = peak_in_flight(schedule);
  std::set<std::string> tested;
  for (const auto& [forward, backward, weight] : kClaimTimes) {
    WEFT_TRY(claimed, claims(text, parameters, forward, backward, weight));
    if (!claimed.hold) continue;
    if (!claimed.peak.empty()) {
      WEFT_TRY_STATUS(check_peak(text, claimed.peak, peaks));
      tested.insert("PEAK");
    }
    if (!claimed.bubble) continue;
    const Price priced = time_verified(schedule, Times::alike(schedule.stages, forward, backward, weight, 0));
    const double bubble = priced.cost - (forward + backward + weight) * schedule.micro_batches;
    if (differs(*claimed.bubble, bubble))
      return user_error(
          fmt::format("BUBBLE {} is false: {} claimed where F, B and W take {}, {} and {}, it is {}",
                      text.bubble_text, *claimed.bubble, forward, backward, weight, bubble));
    tested.insert("BUBBLE");
  }
  return std::vector<std::string>(tested.begin(), tested.end());
}

}  // namespace weft::pipeline
