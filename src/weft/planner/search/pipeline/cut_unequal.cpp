#include "weft/planner/search/pipeline/cut_unequal.h"

#include <algorithm>

#include "weft/parallel/pipeline/cut_parts.h"
#include "weft/planner/search/pipeline/cut_layers.h"

namespace weft::search {

std::optional<std::vector<std::size_t>> stack_cuts(const StagedCosts& costs, const Unfolded& order) {
  if (costs.stack.equal_layers == 0) return std::nullopt;
  return cut_equal_layers(layers_of_parts(costs.at(0).costs),
                          static_cast<std::size_t>(order.schedule.positions()));
}

std::optional<std::vector<std::size_t>> cut_within_room(const StagedCosts& costs, const Unfolded& order) {
  const pipeline::Schedule& schedule = order.schedule;
  const auto stages = static_cast<std::size_t>(schedule.stages);
  if (stack_cuts(costs, order)) return std::nullopt;  // the software cuts, whether or not that fits
  const double runs = static_cast<double>(schedule.positions()) / schedule.stages;
  std::vector<std::vector<double>> work(stages), bytes(stages), working(stages), entering(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    double sent = 0;
    for (const PartCost& cost : costs.at(s).costs) {
      entering[s].push_back(order.in_flight[s] * sent);
      sent = cost.sent;
      work[s].push_back(cost.work());
      bytes[s].push_back(cost.parameters + cost.gradients + cost.optimizer + order.in_flight[s] * cost.kept);
      working[s].push_back(cost.working / runs);
    }
  }
  std::vector<pipeline::CutPlace> places;
  for (std::int32_t p = 0; p < schedule.positions(); ++p) {
    const auto stage = static_cast<std::size_t>(schedule.stage_at(p, 0));
    places.push_back(
        {work[stage], bytes[stage], costs.at(stage).room / runs, working[stage], entering[stage]});
  }
  return pipeline::cut_parts(places);
}

std::vector<std::size_t> cut_unequal(const StagedCosts& costs, const Unfolded& order) {
  if (auto cuts = stack_cuts(costs, order)) return *std::move(cuts);
  std::vector<std::vector<double>> work;
  for (std::size_t s = 0; s < static_cast<std::size_t>(order.schedule.stages); ++s)
    work.push_back(work_of(costs.at(s).costs));
  std::vector<pipeline::CutPlace> places;
  for (std::int32_t p = 0; p < order.schedule.positions(); ++p)
    places.push_back({work[static_cast<std::size_t>(order.schedule.stage_at(p, 0))], {}, 0});
  std::vector<std::size_t> cuts = *pipeline::cut_parts(places);
  if (const auto price = estimate_pipeline(costs, order, cuts, {}, Detail::sums); price.ok() && price->fits)
    return cuts;
  return cut_within_room(costs, order).value_or(std::move(cuts));
}

std::vector<std::size_t> move_cuts(const StagedCosts& costs, const Unfolded& order,
                                   std::vector<std::size_t> cuts, const cost::MeshLink& link) {
  if (stack_cuts(costs, order)) return cuts;
  const auto price = [&](const std::vector<std::size_t>& ends) {
    return estimate_pipeline(costs, order, ends, link, Detail::sums);
  };
  Result<PipelineEstimate> best = price(cuts);
  if (!best.ok()) return cuts;
  constexpr double kWorthMoving = 0.9995;  // of the previous seconds
  const auto better = [](const PipelineEstimate& a, const PipelineEstimate& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.seconds < kWorthMoving * b.seconds : a.peak_bytes < b.peak_bytes;
  };
  // Counts passes instead of time: at most half a second, and the same result on every machine.
  constexpr double kMostPasses = 5e6;
  double passes = 0, each = 0;
  for (const std::vector<pipeline::Pass>& stage : order.schedule.orders)
    each += static_cast<double>(stage.size());
  // Two neighbouring cuts around a single part may have to move together.
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t first = 0; first + 1 < cuts.size(); ++first)
      for (std::size_t last = first; last < std::min(first + 2, cuts.size() - 1); ++last)
        for (const bool later : {true, false}) {
          std::vector<std::size_t> tried = cuts;
          for (std::size_t c = first; c <= last; ++c) tried[c] = later ? tried[c] + 1 : tried[c] - 1;
          const std::size_t before = first == 0 ? 0 : tried[first - 1];
          if (tried[first] <= before || tried[last] >= tried[last + 1]) continue;
          if ((passes += each) > kMostPasses) return cuts;
          Result<PipelineEstimate> other = price(tried);
          if (!other.ok() || !better(*other, *best)) continue;
          best = std::move(other);
          cuts = std::move(tried);
          moved = true;
        }
  }
  return cuts;
}

}  // namespace weft::search
