#include "weft/parallel/partition/hybrid.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "weft/parallel/partition/hybrid_stages.h"

namespace weft::partition {
namespace {

constexpr std::int32_t kMostHybridIdeals = 1'000;
constexpr std::int64_t kMostHybridParts = 4'000'000;
constexpr std::int32_t kTooManyDevices = std::numeric_limits<std::int32_t>::max() / 2;

// Decides whether there are stages that each take at most a limit. Works from the end of the model:
// for everything outside an ideal and every total number of its replicas, it finds the fewest
// devices. The total determines how many micro-batches the preceding stage holds.
class HybridSearch {
 public:
  HybridSearch(const Hybrid& hybrid, const Ideals& ideals)
      : hybrid_(hybrid), ideals_(ideals), stages_(hybrid, ideals) {
    most_replicas_ = std::min(hybrid.devices, hybrid.micro_batches);
    work_.resize(slot(ideals.count()));
    for (std::int32_t ideal = 0; ideal < ideals.count(); ++ideal)
      for (const Ideals::Step& step : ideals.steps(ideal))
        work_[slot(step.ideal)] = work_[slot(ideal)] + stages_.least_work(step.node);
  }

  bool exact() const { return stages_.exact(); }
  double least() const { return work_.back() / hybrid_.devices; }

  bool find(double limit) {
    limit_ = limit;
    cells_.assign(slot(ideals_.count()) * slot(most_replicas_ + 1), {});
    cell(ideals_.all(), 0).devices = 0;
    for (std::int32_t outer = ideals_.all(); outer > ideals_.none(); --outer) extend(outer);
    for (std::int32_t sum = 0; sum <= most_replicas_; ++sum)
      if (cell(ideals_.none(), sum).devices < kTooManyDevices) return true;
    return false;
  }

  // REQUIRES: find() succeeded.
  std::vector<HybridStage> stages(double& cost) {
    std::int32_t sum = 0;
    while (cell(ideals_.none(), sum).devices == kTooManyDevices) ++sum;
    std::vector<HybridStage> stages;
    cost = 0;
    for (std::int32_t ideal = ideals_.none(); ideal != ideals_.all();) {
      const Cell own = cell(ideal, sum);
      const HybridStages::Part& part = stages_.ending(own.outer)[slot(own.part)];
      const Choices choices =
          stages_.ways(part, own.outer, own.replicas, (sum + own.replicas - 1) / own.replicas, limit_);
      cost = std::max(cost, choices.cost);
      stages.push_back({ideals_.between(ideal, own.outer), choices.options, own.replicas, part.degree});
      ideal = own.outer;
      sum -= own.replicas;
    }
    return stages;
  }

 private:
  struct Cell {
    std::int32_t devices = kTooManyDevices;
    std::int32_t outer = 0, part = 0, replicas = 0;  // the stage that begins here
  };
  Cell& cell(std::int32_t ideal, std::int32_t sum) {
    return cells_[slot(ideal) * slot(most_replicas_ + 1) + slot(sum)];
  }

  void extend(std::int32_t outer) {
    // Only replica totals that need fewer devices than every smaller total.
    std::vector<std::pair<std::int32_t, std::int32_t>> labels;
    // They help only if the remaining devices have enough time for the remaining work.
    const auto spare = hybrid_.devices - work_[slot(outer)] / limit_ * (1 - 1e-12);
    for (std::int32_t sum = 0, fewest = kTooManyDevices; sum <= most_replicas_; ++sum)
      if (const std::int32_t devices = cell(outer, sum).devices; devices < fewest && devices <= spare)
        labels.emplace_back(sum, fewest = devices);
    if (labels.empty()) return;
    const auto& parts = stages_.ending(outer);
    std::vector<std::pair<std::int32_t, std::int32_t>> reach;  // replicas, and their largest possible total
    for (std::size_t i = 0; i < parts.size(); ++i) {
      // Every replica of a smaller part takes less time, so the rest still needs at least its work.
      const double left = work_[slot(parts[i].inner)] / limit_ * (1 - 1e-12);
      if (labels.back().second + parts[i].degree + left > hybrid_.devices) continue;
      reach.clear();
      std::size_t first = 0;
      for (const auto& [sum, devices] : labels) {
        if (devices + parts[i].degree + left > hybrid_.devices) continue;
        const std::int32_t own = fewest_replicas(parts[i], outer, sum, reach, first);
        if (own == 0) continue;
        const std::int32_t all = devices + own * parts[i].degree;
        if (all + left > hybrid_.devices || all >= cell(parts[i].inner, sum + own).devices) continue;
        cell(parts[i].inner, sum + own) = {all, outer, static_cast<std::int32_t>(i), own};
      }
    }
  }

  // The fewest replicas of a part in front of stages with `sum` replicas; more would only cost
  // devices. 0: no number works.
  std::int32_t fewest_replicas(const HybridStages::Part& part, std::int32_t outer, std::int32_t sum,
                               std::vector<std::pair<std::int32_t, std::int32_t>>& reach,
                               std::size_t& first) {
    const std::vector<std::int32_t>& replicas = stages_.replicas();
    // Any number that was too small for a smaller sum is too small for this one.
    for (std::size_t& i = first; i < replicas.size(); ++i) {
      const std::int32_t own = replicas[i];
      if (sum + own > most_replicas_ || own * part.degree > hybrid_.devices) return 0;
      if (i == reach.size()) {
        const std::int32_t most = (most_replicas_ + own - 1) / own;
        reach.emplace_back(own, own * stages_.most_in_flight(part, outer, own, limit_, most));
      }
      if (sum + own <= reach[i].second) return own;
    }
    return 0;
  }

  const Hybrid& hybrid_;
  const Ideals& ideals_;
  HybridStages stages_;
  std::int32_t most_replicas_ = 0;
  std::vector<double> work_;  // device-seconds per ideal
  double limit_ = 0;
  std::vector<Cell> cells_;
};

}  // namespace

Dag Hybrid::dag() const {
  Dag dag{static_cast<std::int32_t>(nodes.size()), {}};
  for (const Edge& edge : edges) dag.edges.emplace_back(edge.from, edge.to);
  return dag;
}

Result<HybridAnswer> cut_hybrid(const Hybrid& hybrid) {
  WEFT_TRY(order, topological_order(hybrid.dag()));
  const Ideals ideals = ideals_of(hybrid.dag(), order, kMostHybridIdeals);
  if (std::int64_t{ideals.count()} * ideals.count() / 2 > kMostHybridParts)
    return user_error(fmt::format("expected a graph of fewer nodes, found {}", hybrid.nodes.size()));
  HybridSearch search(hybrid, ideals);
  HybridAnswer answer;
  answer.ideals = ideals.count();
  answer.exact = ideals.complete();
  // The search is faster with a tight limit, so widen it step by step until a solution is found.
  constexpr double kWidenHybrid = 1.1;
  constexpr std::int32_t kMostWidenings = 12;
  double low = 0, limit = search.least() * 1.02;
  bool found = false;
  for (std::int32_t i = 0; i < kMostWidenings && limit > 0 && !found; ++i, limit *= kWidenHybrid) {
    found = search.find(limit);
    if (!found) low = limit;
  }
  // Then search without a limit, which tells whether memory is the obstacle.
  if (!found && !search.find(std::numeric_limits<double>::max()))
    return user_error("expected stages that fit the memory of the devices, found none",
                      fmt::format("{} devices of {:.0f} bytes", hybrid.devices, hybrid.memory));
  answer.stages = search.stages(answer.cost);
  // Bisect between the best cost found and a limit below which no solution exists.
  while (answer.cost - low > 1e-9 * answer.cost) {
    limit = low + (answer.cost - low) / 2;
    if (search.find(limit))
      answer.stages = search.stages(answer.cost);
    else
      low = limit;
  }
  answer.bound = low;
  answer.exact = answer.exact && search.exact();
  return answer;
}

}  // namespace weft::partition
