#include "weft/runtime/measure/tune_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "weft/base/median.h"
#include "weft/base/units.h"
#include "weft/runtime/measure/tune_rank.h"

namespace weft::measure {
namespace {

struct Findings {
  std::vector<double> errors, costs, as_run;
  std::string worst;

  void add(const Findings& other) {
    if (other.worst_cost() > worst_cost()) worst = other.worst;
    errors.insert(errors.end(), other.errors.begin(), other.errors.end());
    costs.insert(costs.end(), other.costs.begin(), other.costs.end());
    as_run.insert(as_run.end(), other.as_run.begin(), other.as_run.end());
  }
  double worst_cost() const { return costs.empty() ? 0 : std::ranges::max(costs); }
};

void judge_predictions(const comm::ChoiceTable& table, const comm::Setting& setting,
                       const std::vector<comm::Candidate>& candidates, Findings& findings) {
  const bool measured = table.settings().contains(setting);
  for (const comm::Candidate& candidate : candidates) {
    if (candidate.name == kChosen) continue;
    const comm::Candidate expected = table.expect(setting, candidate.name);
    if (measured && expected.times.empty()) continue;
    for (const comm::TimePoint& time : candidate.times)
      findings.errors.push_back(std::abs(expected.seconds(time.bytes) / time.seconds - 1));
  }
}

void judge_choices(const comm::ChoiceTable& table, const comm::Setting& setting,
                   const std::vector<comm::Candidate>& candidates, Findings& findings) {
  std::map<std::int64_t, std::map<std::string, double, std::less<>>> by_size;
  for (const comm::Candidate& candidate : candidates)
    for (const comm::TimePoint& time : candidate.times) by_size[time.bytes][candidate.name] = time.seconds;
  for (auto& [bytes, times] : by_size) {
    auto run = times.extract(std::string(kChosen));
    if (run.empty() || times.empty()) continue;
    const comm::Choice choice = table.choose_for_group(setting, bytes);
    const std::string algorithm = setting.allocated && choice.in_place.value_or(false)
                                      ? std::string(name(comm::DirectAlgorithm::in_place))
                                      : choice.algorithm;
    // If the chosen algorithm was too slow to be measured by name, use the communicator's own run
    // as its time.
    const auto chosen = times.emplace(algorithm, run.mapped()).first;
    findings.as_run.push_back(run.mapped() / chosen->second - 1);
    const auto best = std::ranges::min_element(times, {}, [](const auto& each) { return each.second; });
    const double cost = chosen->second / best->second - 1;
    if (cost > findings.worst_cost()) {
      findings.worst = fmt::format("{} of {}: {} {}, {} {}", collective::name(setting.kind),
                                   print_bytes(static_cast<double>(bytes)), algorithm,
                                   print_seconds(chosen->second), best->first, print_seconds(best->second));
    }
    findings.costs.push_back(cost);
  }
}

TuneCheck summarize(const Findings& findings) {
  TuneCheck check;
  check.predictions = static_cast<std::int64_t>(findings.errors.size());
  check.choices = static_cast<std::int64_t>(findings.costs.size());
  if (!findings.errors.empty()) check.median_error = median(findings.errors);
  if (findings.costs.empty()) return check;
  check.median_cost = median(findings.costs);
  check.as_run = median(findings.as_run);
  check.worst_cost = findings.worst_cost();
  for (const double cost : findings.costs) check.mean_cost += cost / static_cast<double>(check.choices);
  check.worst = findings.worst;
  return check;
}

}  // namespace

TuneChecks check_predictions(const comm::ChoiceTable& table, const comm::ChoiceTable& measured) {
  std::map<std::tuple<std::string, std::int32_t, std::int32_t, bool>, Findings> rows;
  for (const auto& [setting, candidates] : measured.settings()) {
    Findings& findings = rows[{setting.transport, setting.hosts, setting.ranks, setting.allocated}];
    judge_predictions(table, setting, candidates, findings);
    judge_choices(table, setting, candidates, findings);
  }
  TuneChecks checks;
  Findings all;
  for (const auto& [key, findings] : rows) {
    const auto& [transport, hosts, ranks, allocated] = key;
    checks.rows.push_back({transport, ranks, hosts, allocated, summarize(findings)});
    all.add(findings);
  }
  checks.all = summarize(all);
  return checks;
}

}  // namespace weft::measure
