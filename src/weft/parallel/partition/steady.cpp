#include "weft/parallel/partition/steady.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace weft::partition {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();
// Above the first level, every pair of ideals has a value, and every start needs its own row.
constexpr std::int32_t kMostFlatIdeals = 6'000, kMostDeepIdeals = 1'000, kMostSteadyMachines = 10'000;

// Seconds between two ideals, for all pairs.
class Between {
 public:
  explicit Between(std::int32_t ideals) : count_(slot(ideals)), seconds_(count_ * count_, kNoTime) {}
  double& of(std::int32_t inner, std::int32_t outer) { return seconds_[slot(inner) * count_ + slot(outer)]; }
  double of(std::int32_t inner, std::int32_t outer) const {
    return seconds_[slot(inner) * count_ + slot(outer)];
  }

 private:
  std::size_t count_;
  std::vector<double> seconds_;
};

class SteadySearch {
 public:
  SteadySearch(const Ideals& ideals, const IdealSums& sums, const std::vector<Level>& levels, bool straight)
      : ideals_(ideals), sums_(sums), levels_(levels), straight_(straight) {}

  double solve() {
    Between base(ideals_.count());
    for (std::int32_t inner = 0; inner < ideals_.count(); ++inner)
      for (std::int32_t outer = inner + 1; outer < ideals_.count(); ++outer)
        if (ideals_.within(inner, outer)) base.of(inner, outer) = (compute(outer) - compute(inner)) / 1000;
    bases_.push_back(std::move(base));
    for (std::size_t level = 0; level + 1 < levels_.size(); ++level) {
      Between above(ideals_.count());
      for (std::int32_t inner = 0; inner < ideals_.all(); ++inner) {
        fill(level, inner);
        for (std::int32_t outer = inner + 1; outer < ideals_.count(); ++outer)
          above.of(inner, outer) = cell(outer, levels_[level].machines).seconds;
      }
      bases_.push_back(std::move(above));
    }
    fill(levels_.size() - 1, ideals_.none());
    return cell(ideals_.all(), levels_.back().machines).seconds;
  }

  // The stages of a level between two ideals. Rows are recomputed: storing all of them would take
  // more memory than the search has time to fill.
  std::vector<SteadyStage> stages(std::size_t level, std::int32_t inner, std::int32_t outer) {
    fill(level, inner);
    std::vector<std::pair<std::int32_t, std::int32_t>> cuts;  // per stage: its inner ideal and its machines
    for (std::int32_t ideal = outer, left = levels_[level].machines; ideal != inner;) {
      const Cell& own = cell(ideal, left);
      cuts.emplace_back(own.split, own.replicas);
      ideal = own.split;
      left -= own.replicas;
    }
    std::ranges::reverse(cuts);
    std::vector<SteadyStage> stages;
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const std::int32_t end = i + 1 < cuts.size() ? cuts[i + 1].first : outer;
      SteadyStage stage{ideals_.between(cuts[i].first, end), cuts[i].second, {}};
      if (level > 0) stage.inner = this->stages(level - 1, cuts[i].first, end);
      stages.push_back(std::move(stage));
    }
    return stages;
  }

 private:
  struct Cell {
    double seconds = kNoTime;
    std::int32_t split = 0, replicas = 0;  // the last stage begins after `split` on this many machines
  };

  double compute(std::int32_t ideal) const {
    return sums_.forward[slot(ideal)] + sums_.backward[slot(ideal)];
  }
  Cell& cell(std::int32_t outer, std::int32_t machines) {
    return row_[slot(outer) * slot(width_) + slot(machines)];
  }

  // cell(outer, m): the best stages from `inner` to `outer` on m machines of the level.
  void fill(std::size_t level, std::int32_t inner) {
    const Between& base = bases_[level];
    const std::int32_t machines = levels_[level].machines;
    const double bandwidth = levels_[level].bandwidth;
    const double links = level == 0 ? 1.0 : levels_[level - 1].machines;
    width_ = machines + 1;
    row_.assign(slot(ideals_.count()) * slot(width_), {});
    reached_.clear();
    for (std::int32_t outer = inner + 1; outer < ideals_.count(); ++outer) {
      if (base.of(inner, outer) == kNoTime) continue;
      const double parameters = sums_.parameters[slot(outer)] - sums_.parameters[slot(inner)];
      for (std::int32_t m = 1; m <= (straight_ ? 1 : machines); ++m)
        cell(outer, m) = {(base.of(inner, outer) + 4 * (m - 1) * parameters / (bandwidth * m) / links) / m,
                          inner, m};
      for (const std::int32_t split : reached_)
        if (base.of(split, outer) < kNoTime)
          add_stage(base.of(split, outer), split, outer, machines, bandwidth);
      reached_.push_back(outer);
    }
  }

  void add_stage(double seconds, std::int32_t split, std::int32_t outer, std::int32_t machines,
                 double bandwidth) {
    const double parameters = sums_.parameters[slot(outer)] - sums_.parameters[slot(split)];
    double crossing = sums_.crossing[slot(split)];
    if (outer != ideals_.all()) crossing = std::max(crossing, sums_.crossing[slot(outer)]);
    const Cell* before = &cell(split, 0);
    Cell* after = &cell(outer, 0);
    for (std::int32_t own = 1; own <= (straight_ ? 1 : machines - 1); ++own) {
      const double last = std::max((seconds + 4 * (own - 1) * parameters / (bandwidth * own)) / own,
                                   2 * crossing / (bandwidth * own));
      for (std::int32_t m = own + 1; m <= machines; ++m)
        if (const double most = std::max(before[m - own].seconds, last); most < after[m].seconds)
          after[m] = {most, split, own};
    }
  }

  const Ideals& ideals_;
  const IdealSums& sums_;
  const std::vector<Level>& levels_;
  bool straight_;
  std::vector<Between> bases_;  // by level: time of a stage on one machine
  std::vector<Cell> row_;
  std::vector<std::int32_t> reached_;
  std::int32_t width_ = 0;
};

}  // namespace

Result<SteadyAnswer> cut_steady(const Profile& profile, const std::vector<Level>& levels, bool straight) {
  if (levels.empty()) return user_error("expected a level of machines, found none");
  WEFT_TRY(order, topological_order(profile.dag()));
  const Ideals ideals =
      ideals_of(profile.dag(), order, levels.size() == 1 ? kMostFlatIdeals : kMostDeepIdeals);
  for (const Level& level : levels)
    if (level.machines < 1 || level.machines > kMostSteadyMachines || !(level.bandwidth > 0))
      return user_error(fmt::format("expected 1 to {} machines with a bandwidth, found {} with {}",
                                    kMostSteadyMachines, level.machines, level.bandwidth));
  if (ideals.count() > kMostFlatIdeals)
    return user_error(fmt::format("expected a graph of at most {} nodes, found {}", kMostFlatIdeals - 1,
                                  profile.nodes.size()));
  const IdealSums sums = sums_of(profile, ideals);
  SteadySearch search(ideals, sums, levels, straight);
  SteadyAnswer answer;
  answer.ideals = ideals.count();
  answer.exact = ideals.complete();
  answer.cost = search.solve();
  if (answer.cost == kNoTime)
    return user_error("expected at least one layer per machine, found fewer", "fewer machines");
  answer.stages = search.stages(levels.size() - 1, ideals.none(), ideals.all());
  return answer;
}

}  // namespace weft::partition
