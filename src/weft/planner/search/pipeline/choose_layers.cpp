#include "weft/planner/search/pipeline/choose_layers.h"

#include <algorithm>
#include <limits>
#include <set>

#include "weft/parallel/partition/choices.h"

namespace weft::search {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class LayerChooser {
 public:
  LayerChooser(const PartCosts& kept, const PartCosts& again, std::span<const std::string> layers,
               const Unfolded& order, double room)
      : kept_(kept),
        again_(again),
        layers_(layers),
        order_(order),
        room_(room),
        work_before_(kept.size() + 1) {
    for (std::size_t p = 0; p < kept.size(); ++p) work_before_[p + 1] = work_before_[p] + kept[p].work();
  }

  std::optional<ChosenLayers> run() const {
    const auto cuts = order_.schedule.positions() == order_.schedule.stages ? shortest_runs() : alike_runs();
    return cuts ? of(*cuts) : std::nullopt;
  }

 private:
  std::size_t stage_at(std::size_t position) const {
    return static_cast<std::size_t>(order_.schedule.stage_at(static_cast<std::int32_t>(position), 0));
  }

  struct Run {
    std::size_t first = 0, end = 0;
  };

  // One run per stage: bisects between a lower bound on the time and a time that suffices.
  std::optional<std::vector<std::size_t>> shortest_runs() const {
    double few = work_before_.back() / order_.schedule.positions(), enough = 0;
    for (const PartCost& cost : again_) enough += cost.work();
    std::optional<std::vector<std::size_t>> cuts = cuts_below(enough);
    constexpr double kNear = 1e-3;
    while (cuts && enough - few > kNear * enough) {
      const double middle = (few + enough) / 2;
      if (auto found = cuts_below(middle)) {
        cuts = std::move(found);
        enough = middle;
      } else {
        few = middle;
      }
    }
    return cuts;
  }

  // Greedy: makes each run as long as possible. A shorter run would only leave more to later ones.
  std::optional<std::vector<std::size_t>> cuts_below(double seconds) const {
    const auto positions = static_cast<std::size_t>(order_.schedule.positions());
    std::vector<std::size_t> cuts;
    std::size_t from = 0;
    for (std::size_t k = 0; k < positions; ++k) {
      // The longest run that is fast enough and leaves one part for each later run.
      std::size_t end = from, most = kept_.size() - (positions - 1 - k);
      while (end < most) {
        const std::size_t middle = (end + most + 1) / 2;
        const Run run{from, middle};
        if (seconds_of({&run, 1}, stage_at(k), seconds, nullptr) <= seconds)
          end = middle;
        else
          most = middle - 1;
      }
      if (end == from) return std::nullopt;
      cuts.push_back(end);
      from = end;
    }
    return from == kept_.size() ? std::optional(cuts) : std::nullopt;
  }

  // Runs of a stage with chunks share its memory. Each round cuts by the costs with the layers that
  // were chosen for the previous cuts.
  std::optional<std::vector<std::size_t>> alike_runs() const {
    const auto positions = static_cast<std::size_t>(order_.schedule.positions());
    std::optional<std::vector<std::size_t>> best;
    double quickest = kNever;
    PartCosts costs = kept_;
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::size_t> cuts = cut_parts(costs, positions);
      double slowest = 0;
      const std::vector<std::string> names = layers_for(cuts, &slowest);
      if (slowest == kNever) {
        if (round > 0) break;
        costs = again_;  // recompute all layers, then keep those that fit
        continue;
      }
      if (slowest < quickest) quickest = slowest, best = cuts;
      costs = with(names);
    }
    return best;
  }

  // The least time for a stage's runs within its memory, and the layers recomputed for it. Times
  // above `most` count as infinite.
  double seconds_of(std::span<const Run> runs, std::size_t stage, double most,
                    std::vector<std::string>* chosen) const {
    double as_kept = 0;
    for (const Run& run : runs) as_kept += work_before_[run.end] - work_before_[run.first];
    if (as_kept > most) return kNever;
    const double in_flight = order_.in_flight[stage];
    double bytes = 0, working = 0, working_again = 0;
    for (const Run& run : runs) {
      if (run.first > 0) bytes += in_flight * kept_[run.first - 1].sent;
      for (std::size_t p = run.first; p < run.end; ++p) {
        const PartCost& cost = kept_[p];
        bytes += cost.parameters + cost.gradients + cost.optimizer + in_flight * cost.kept;
        working = std::max(working, cost.working);
        working_again = std::max(working_again, again_[p].working);
      }
    }
    if (bytes + working <= room_) return as_kept;
    partition::Items items;
    std::vector<std::size_t> part_of_item;
    for (const Run& run : runs)
      for (std::size_t p = run.first; p < run.end; ++p) {
        if (layers_[p].empty()) continue;
        if (items.empty() || layers_[part_of_item.back()] != layers_[p]) {
          items.push_back({{0, 0}, {0, 0}});
          part_of_item.push_back(p);
        }
        items.back()[1].cost += again_[p].work() - kept_[p].work();
        items.back()[1].bytes -= in_flight * (kept_[p].kept - again_[p].kept);
      }
    if (items.empty()) return kNever;
    const double left = room_ - std::max(working, working_again) - bytes;
    partition::Choices found = partition::choose(items, left);
    if (chosen != nullptr) found = partition::choose_exactly(items, left, found, kMostSteps);
    if (found.options.empty()) return kNever;
    for (std::size_t i = 0; chosen != nullptr && i < items.size(); ++i)
      if (found.options[i] == 1) chosen->push_back(layers_[part_of_item[i]]);
    return as_kept + found.cost;
  }

  // Sets `slowest` to the time of the slowest stage with these layers.
  std::vector<std::string> layers_for(const std::vector<std::size_t>& cuts, double* slowest) const {
    std::vector<std::vector<Run>> runs(static_cast<std::size_t>(order_.schedule.stages));
    for (std::size_t k = 0; k < cuts.size(); ++k)
      runs[stage_at(k)].push_back({k == 0 ? 0 : cuts[k - 1], cuts[k]});
    std::vector<std::string> names;
    for (std::size_t s = 0; s < runs.size(); ++s)
      *slowest = std::max(*slowest, seconds_of(runs[s], s, kNever, &names));
    return names;
  }

  // A layer split across two stages is recomputed on both if either is short of memory.
  PartCosts with(const std::vector<std::string>& names) const {
    const std::set<std::string> repeated(names.begin(), names.end());
    PartCosts costs;
    for (std::size_t p = 0; p < kept_.size(); ++p)
      costs.push_back((repeated.contains(layers_[p]) ? again_ : kept_)[p]);
    return costs;
  }

  std::optional<ChosenLayers> of(const std::vector<std::size_t>& cuts) const {
    double slowest = 0;
    const std::vector<std::string> names = layers_for(cuts, &slowest);
    if (names.empty()) return std::nullopt;
    ChosenLayers made{{}, with(names), cuts};
    for (const std::string& layer : layers_)
      if (std::ranges::find(names, layer) != names.end() &&
          (made.layers.empty() || made.layers.back() != layer))
        made.layers.push_back(layer);
    return made;
  }

  static constexpr std::int32_t kMostSteps = 2000;

  const PartCosts &kept_, &again_;
  const std::span<const std::string> layers_;
  const Unfolded& order_;
  const double room_;
  std::vector<double> work_before_;
};

}  // namespace

std::optional<ChosenLayers> choose_layers(const PartCosts& kept, const PartCosts& again,
                                          std::span<const std::string> layers, const Unfolded& order,
                                          double room) {
  if (kept.size() != again.size() || kept.size() != layers.size()) return std::nullopt;
  return LayerChooser(kept, again, layers, order, room).run();
}

}  // namespace weft::search
