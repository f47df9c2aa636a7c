#include "weft/communication/comm/choice/choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::comm {
namespace {

// Distance between two rank counts on a log scale: 2 is as far from 4 as 8 is.
double distance(std::int32_t a, std::int32_t b) {
  return std::abs(std::log2(static_cast<double>(a)) - std::log2(static_cast<double>(b)));
}

// If formulas are this close, prefer a direct algorithm, then a ring. In measurements these were
// never far behind the best program with the same traffic and message count; others were slower by
// up to a third.
constexpr double kNotToldApart = 1.05;

double promised(const Candidate& candidate, std::int64_t bytes, bool rings_are_good) {
  const double seconds = candidate.seconds(bytes);
  if (!candidate.times.empty() || candidate.name.starts_with(kDirect)) return seconds;
  const bool is_ring = candidate.name.ends_with("_ring");
  return seconds * kNotToldApart * (is_ring && rings_are_good ? 1 : kNotToldApart);
}

std::string explain(const Candidate& best, double seconds, const Candidate* next, double next_seconds) {
  std::string why = fmt::format("{}: {}", best.source, print_seconds(seconds));
  if (next != nullptr) why += fmt::format("; next {} {}", next->name, print_seconds(next_seconds));
  return why;
}

}  // namespace

double Candidate::seconds(std::int64_t bytes) const {
  if (times.empty()) return formula.seconds(bytes);
  if (bytes <= times.front().bytes) return times.front().seconds;
  if (bytes >= times.back().bytes) {
    return times.back().seconds * static_cast<double>(bytes) / static_cast<double>(times.back().bytes);
  }
  return sim::interpolate(times, static_cast<double>(bytes));
}

bool Candidate::left_out(std::int64_t bytes, std::int64_t largest_of_all) const {
  return !times.empty() && largest() < std::min(bytes, largest_of_all);
}

void ChoiceTable::set(const Setting& setting, std::vector<Candidate> candidates) {
  for (Candidate& candidate : candidates) {
    auto& times = candidate.times;
    std::erase_if(times, [](const TimePoint& time) {
      return time.bytes < 1 || !std::isfinite(time.seconds) || time.seconds <= 0;
    });
    std::ranges::stable_sort(times, {}, &TimePoint::bytes);
    const auto same_size = [](const TimePoint& a, const TimePoint& b) { return a.bytes == b.bytes; };
    times.erase(std::unique(times.begin(), times.end(), same_size), times.end());
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::name);
  table_[setting] = std::move(candidates);
}

void ChoiceTable::set_figures(const std::string& transport, Figures figures) {
  figures_[transport] = std::move(figures);
}

void ChoiceTable::keep_only(std::string_view transport, std::int32_t ranks) {
  std::erase_if(table_, [&](const auto& entry) { return entry.first.transport != transport; });
  std::erase_if(figures_, [&](const auto& entry) { return entry.first != transport; });
  std::int32_t below = 0, above = std::numeric_limits<std::int32_t>::max();
  for (const auto& [setting, candidates] : table_) {
    if (setting.ranks <= ranks) below = std::max(below, setting.ranks);
    if (setting.ranks >= ranks) above = std::min(above, setting.ranks);
  }
  std::erase_if(table_,
                [&](const auto& entry) { return entry.first.ranks != below && entry.first.ranks != above; });
}

const Candidate* ChoiceTable::find(const Setting& setting, std::string_view algorithm) const {
  const auto found = table_.find(setting);
  if (found == table_.end()) return nullptr;
  const auto at = std::ranges::lower_bound(found->second, algorithm, {}, &Candidate::name);
  return at != found->second.end() && at->name == algorithm ? &*at : nullptr;
}

const Figures& ChoiceTable::figures_of(std::string_view transport) const {
  static const Figures kNone{.cores = 1,
                             .step = 1e-5,
                             .oversubscribed_step = 1e-5,
                             .wire = 1e-9,
                             .copy = 1e-10,
                             .reduce = 1e-10,
                             .source = "guess"};
  const auto found = figures_.find(transport);
  return found != figures_.end() ? found->second : kNone;
}

Candidate ChoiceTable::expect(const Setting& setting, std::string_view algorithm) const {
  if (const Candidate* known = find(setting, algorithm)) return *known;
  const Figures& figures = figures_of(setting.transport);
  Candidate candidate{.name = std::string(algorithm),
                      .source = figures.source,
                      .formula = formula_of(setting, algorithm, figures)};
  // The nearest measured number of ranks; of two equally near, the smaller.
  const Candidate* nearest = nullptr;
  Setting nearest_setting;
  for (const auto& [measured, candidates] : table_) {
    if (measured.kind != setting.kind || measured.transport != setting.transport ||
        measured.allocated != setting.allocated || (measured.hosts == 1) != (setting.hosts == 1))
      continue;
    if (nearest != nullptr &&
        distance(measured.ranks, setting.ranks) >= distance(nearest_setting.ranks, setting.ranks))
      continue;
    if (const Candidate* same = find(measured, algorithm); same != nullptr && !same->times.empty()) {
      nearest = same;
      nearest_setting = measured;
    }
  }
  if (nearest == nullptr) return candidate;
  const Formula there = formula_of(nearest_setting, algorithm, figures);
  for (const TimePoint& time : nearest->times) {
    const double ratio = candidate.formula.seconds(time.bytes) / there.seconds(time.bytes);
    if (std::isfinite(ratio) && ratio > 0) candidate.times.push_back({time.bytes, time.seconds * ratio});
  }
  candidate.source = fmt::format("scaled from {} ranks, {}", nearest_setting.ranks, nearest->source);
  return candidate;
}

Choice ChoiceTable::choose(const Setting& setting, std::int64_t bytes,
                           std::span<const std::string> allowed) const {
  std::vector<Candidate> candidates;
  for (const std::string& each : allowed) candidates.push_back(expect(setting, each));
  // Candidates without measurements do not compete with measured ones.
  if (std::ranges::any_of(candidates, [](const Candidate& each) { return !each.times.empty(); }))
    std::erase_if(candidates, [](const Candidate& each) { return each.times.empty(); });
  std::int64_t largest = 0;
  for (const Candidate& each : candidates) largest = std::max(largest, each.largest());
  std::erase_if(candidates, [&](const Candidate& each) { return each.left_out(bytes, largest); });
  std::ranges::sort(candidates, {}, &Candidate::name);
  // Over sockets, ranks that share cores are rescheduled at each of the many steps of a ring
  // all_reduce: 1 MiB among 4 ranks on 2 cores took 1.14 to 1.34 times as long as with halving and
  // doubling.
  const bool rings_are_good = setting.transport != "tcp" || setting.hosts > 1 ||
                              setting.kind != Kind::all_reduce ||
                              setting.ranks <= figures_of(setting.transport).cores;
  const Candidate *best = nullptr, *next = nullptr;
  double best_seconds = 0, next_seconds = 0;
  for (const Candidate& each : candidates) {
    const double seconds = promised(each, bytes, rings_are_good);
    if (best == nullptr || seconds < best_seconds) {
      next = best, next_seconds = best_seconds;
      best = &each, best_seconds = seconds;
    } else if (next == nullptr || seconds < next_seconds) {
      next = &each, next_seconds = seconds;
    }
  }
  if (best == nullptr) return {};
  best_seconds = best->seconds(bytes);
  if (next != nullptr) next_seconds = next->seconds(bytes);
  return {best->name, best_seconds, explain(*best, best_seconds, next, next_seconds)};
}

}  // namespace weft::comm
