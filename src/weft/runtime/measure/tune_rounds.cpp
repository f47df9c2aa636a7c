#include "weft/runtime/measure/tune_rounds.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/median.h"
#include "weft/base/random.h"

namespace weft::measure {
namespace {

constexpr double kNear = 3;                          // times the best: may still turn out fastest
constexpr double kFarBehindBest = 2 * kNear;         // for estimates from few calls
constexpr double kNearIfLarge = 2;                   // large calls are expensive to measure
constexpr std::int64_t kBandwidthBound = 256 << 10;  // above this, the ranking hardly changes
constexpr std::int64_t kLarge = 16 << 20;            // single calls are long and stable
constexpr double kTuneBatchSeconds = 2e-3;
constexpr std::int32_t kFirstBatches = 3, kFirstLargeBatches = 2, kBatchesPerRound = 2;
constexpr std::int32_t kFirstCalls = 4, kFewestIterations = 2, kMostTuneIterations = 1000;

// The default without measurements, and the communicator's choice: never skipped.
bool is_asked_for(std::string_view name) { return name == comm::kDirect || name == kChosen; }

// The time of a batch is that of its slowest rank.
std::vector<double> slowest_of(std::span<const TuneTimes> ranks, std::size_t turn) {
  std::vector<double> slowest;
  for (const TuneTimes& rank : ranks) {
    const std::vector<double>& batches = rank.batches[turn];
    slowest.resize(std::max(slowest.size(), batches.size()));
    for (std::size_t i = 0; i < batches.size(); ++i) slowest[i] = std::max({slowest[i], batches[i], 1e-9});
  }
  return slowest;
}

std::string trouble_of(std::span<const TuneTimes> ranks, std::size_t turn) {
  for (const TuneTimes& rank : ranks)
    if (!rank.troubles[turn].empty()) return rank.troubles[turn];
  return {};
}

}  // namespace

double lower_quartile(std::vector<double> batches) {
  const auto quartile = batches.begin() + static_cast<std::ptrdiff_t>(batches.size() / 4);
  std::ranges::nth_element(batches, quartile);
  return *quartile;
}

TuneRounds::TuneRounds(comm::Setting setting, Purpose purpose)
    : setting_(std::move(setting)), purpose_(purpose) {}

TuneOrder TuneRounds::order(std::int64_t bytes, std::int32_t round) const {
  TuneOrder order{.kind = setting_.kind, .bytes = bytes, .allocated = setting_.allocated};
  const auto best_of = [](const std::map<std::string, Times>& times) {
    double best = 0;
    for (const auto& [name, each] : times) best = best == 0 ? each.first : std::min(best, each.first);
    return best;
  };
  if (round > 0) {
    const auto found = by_size_.find(bytes);
    if (found == by_size_.end()) return order;
    const double near = bytes < kBandwidthBound ? kFarBehindBest : bytes < kLarge ? kNear : kNearIfLarge;
    const double limit = best_of(found->second) * near;
    order.batches = kBatchesPerRound;
    order.warm_up = bytes < kLarge;
    for (const auto& [name, times] : found->second) {
      if (failed_.contains(name) || (times.first > limit && !is_asked_for(name))) continue;
      const double fewest = bytes < kLarge ? kFewestIterations : 1;
      const double fit = std::clamp(kTuneBatchSeconds / times.first, fewest, double{kMostTuneIterations});
      order.turns.push_back({name, static_cast<std::int32_t>(fit)});
    }
    Random random(static_cast<std::uint64_t>(bytes) * 64 + static_cast<std::uint64_t>(round));
    for (std::size_t left = order.turns.size(); left > 1; --left)
      std::swap(order.turns[left - 1], order.turns[random.below(left)]);
    return order;
  }
  order.batches = bytes < kLarge ? kFirstBatches : kFirstLargeBatches;
  auto names = comm::candidates_for(setting_, bytes);
  if (purpose_ == Purpose::check) names.emplace_back(kChosen);
  // The times at the previous size, if it is large enough to predict this one.
  const auto after = by_size_.lower_bound(bytes);
  const auto* before = after != by_size_.begin() && std::prev(after)->first >= kBandwidthBound
                           ? &std::prev(after)->second
                           : nullptr;
  for (std::string& name : names) {
    if (failed_.contains(name)) continue;
    if (before != nullptr && !is_asked_for(name)) {
      const auto found = before->find(name);
      const double near = bytes < kLarge ? kNear : kNearIfLarge;
      if (found == before->end() || found->second.first > near * best_of(*before)) continue;
    }
    order.turns.push_back({std::move(name), bytes < kLarge ? kFirstCalls : 1});
  }
  return order;
}

void TuneRounds::add(const TuneOrder& order, std::int32_t round, std::span<const TuneTimes> ranks) {
  auto& sizes = by_size_[order.bytes];
  for (std::size_t turn = 0; turn < order.turns.size(); ++turn) {
    const std::string& name = order.turns[turn].algorithm;
    std::string trouble = trouble_of(ranks, turn);
    const std::vector<double> batches = slowest_of(ranks, turn);
    if (!trouble.empty()) {
      if (failed_.insert(name).second)
        dropped_.push_back(fmt::format("{} of {}: {}", name, collective::name(order.kind), trouble));
      continue;
    }
    if (batches.empty()) continue;  // came after a failed turn
    if (round == 0) {
      sizes[name].first = std::ranges::min(batches);
    } else {
      auto& kept = sizes[name].batches;
      kept.insert(kept.end(), batches.begin(), batches.end());
    }
  }
}

std::vector<comm::Candidate> TuneRounds::candidates(std::string_view source) const {
  std::map<std::string, comm::Candidate> candidates;
  for (const auto& [bytes, times] : by_size_)
    for (const auto& [name, each] : times) {
      if (failed_.contains(name)) continue;
      if (each.batches.empty() && purpose_ == Purpose::check) continue;
      comm::Candidate& candidate = candidates[name];
      candidate.name = name;
      candidate.source = source;
      candidate.times.push_back({bytes, each.batches.empty()           ? each.first
                                        : purpose_ == Purpose::predict ? lower_quartile(each.batches)
                                                                       : median(each.batches)});
    }
  std::vector<comm::Candidate> values;
  for (auto& [name, candidate] : candidates) values.push_back(std::move(candidate));
  return values;
}

std::int64_t TuneRounds::times() const {
  std::int64_t count = 0;
  for (const auto& [bytes, times] : by_size_)
    count += std::ranges::count_if(times, [](const auto& each) { return !each.second.batches.empty(); });
  return count;
}

std::int64_t TuneRounds::disturbed() const {
  std::int64_t count = 0;
  for (const auto& [bytes, times] : by_size_)
    count += std::ranges::count_if(times, [](const auto& each) {
      const std::vector<double>& batches = each.second.batches;
      return !batches.empty() && median(batches) > 2 * std::ranges::min(batches);
    });
  return count;
}

}  // namespace weft::measure
