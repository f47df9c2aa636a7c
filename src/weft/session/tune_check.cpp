#include "weft/session/tune_check.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "weft/base/median.h"

namespace weft::session {

TuneCheck check_predictions(const comm::ChoiceTable& table, const comm::ChoiceTable& measured) {
  TuneCheck check;
  std::vector<double> errors, costs;
  for (const auto& [setting, candidates] : measured.settings()) {
    if (!table.settings().contains(setting)) continue;
    std::map<std::int64_t, std::map<std::string, double>> by_size;
    for (const comm::Candidate& candidate : candidates)
      for (const comm::TimePoint& time : candidate.times) {
        by_size[time.bytes][candidate.name] = time.seconds;
        const comm::Candidate expected = table.expect(setting, candidate.name);
        if (!expected.times.empty())
          errors.push_back(std::abs(expected.seconds(time.bytes) / time.seconds - 1));
      }
    for (const auto& [bytes, times] : by_size) {
      std::vector<std::string> names;
      double best = 0;
      for (const auto& [name, seconds] : times) {
        names.push_back(name);
        if (best == 0 || seconds < best) best = seconds;
      }
      const comm::Choice choice = table.choose(setting, bytes, names);
      costs.push_back(times.at(choice.algorithm) / best - 1);
    }
  }
  check.predictions = static_cast<std::int64_t>(errors.size());
  check.choices = static_cast<std::int64_t>(costs.size());
  if (!errors.empty()) check.median_error = median(errors);
  if (costs.empty()) return check;
  check.median_cost = median(costs);
  check.worst_cost = *std::ranges::max_element(costs);
  for (const double cost : costs) check.mean_cost += cost / static_cast<double>(costs.size());
  return check;
}

}  // namespace weft::session
