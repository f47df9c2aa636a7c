#include "weft/planner/search/pipeline/cut_unequal.h"

#include <algorithm>

#include "weft/parallel/pipeline/cut_parts.h"

namespace weft::search {

std::vector<std::size_t> cut_unequal(const StagedCosts& costs, const Unfolded& order) {
  const auto positions = static_cast<std::size_t>(order.schedule.positions());
  const auto stages = static_cast<std::size_t>(order.schedule.stages);
  std::vector<std::vector<double>> work(stages), bytes(stages);
  for (std::size_t s = 0; s < stages; ++s)
    for (const PartCost& cost : costs.at(s).costs) {
      work[s].push_back(cost.work());
      bytes[s].push_back(cost.parameters + cost.gradients + cost.optimizer + order.in_flight[s] * cost.kept);
    }
  std::vector<pipeline::CutPlace> places;
  for (std::size_t p = 0; p < positions; ++p) {
    const auto stage = static_cast<std::size_t>(order.schedule.stage_at(static_cast<std::int32_t>(p), 0));
    double most = 0;  // while a pass runs
    for (const PartCost& cost : costs.at(stage).costs) most = std::max(most, cost.working);
    const double room = std::max(0.0, costs.at(stage).room - most) * order.schedule.stages;
    places.push_back({work[stage], bytes[stage], room / static_cast<double>(positions)});
  }
  if (auto cuts = pipeline::cut_parts(places)) return *std::move(cuts);
  for (pipeline::CutPlace& place : places) place.bytes = {};
  return *pipeline::cut_parts(places);
}

std::vector<std::size_t> move_cuts(const StagedCosts& costs, const Unfolded& order,
                                   std::vector<std::size_t> cuts, const cost::MeshLink& link) {
  const auto price = [&](const std::vector<std::size_t>& ends) {
    return price_in_time(costs, order, ends, link, Detail::sums);
  };
  Result<PricedInTime> best = price(cuts);
  if (!best.ok()) return cuts;
  const auto better = [](const PricedInTime& a, const PricedInTime& b) {
    return a.fits != b.fits ? a.fits : a.fits ? a.seconds < b.seconds : a.peak_bytes < b.peak_bytes;
  };
  // The first of a pair of cuts may have to move with the second, past a run of one part.
  constexpr int kMostRounds = 64;
  bool moved = true;
  for (int round = 0; moved && round < kMostRounds; ++round) {
    moved = false;
    for (std::size_t first = 0; first + 1 < cuts.size(); ++first)
      for (std::size_t last = first; last < std::min(first + 2, cuts.size() - 1); ++last)
        for (const bool later : {true, false}) {
          std::vector<std::size_t> tried = cuts;
          for (std::size_t c = first; c <= last; ++c) tried[c] = later ? tried[c] + 1 : tried[c] - 1;
          const std::size_t before = first == 0 ? 0 : tried[first - 1];
          if (tried[first] <= before || tried[last] >= tried[last + 1]) continue;
          Result<PricedInTime> other = price(tried);
          if (!other.ok() || !better(*other, *best)) continue;
          best = std::move(other);
          cuts = std::move(tried);
          moved = true;
        }
  }
  return cuts;
}

}  // namespace weft::search
