#include "weft/planner/search/pipeline/choose_layers.h"

#include <algorithm>
#include <limits>
#include <set>

#include "weft/parallel/partition/choices.h"
#include "weft/planner/search/pipeline/cut_unequal.h"

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
        runs_(static_cast<double>(order.schedule.positions()) / order.schedule.stages),
        work_before_(kept.size() + 1) {
    for (std::size_t p = 0; p < kept.size(); ++p) work_before_[p + 1] = work_before_[p] + kept[p].work();
  }

  std::optional<ChosenLayers> run() const {
    // Between what no cut does better than, and what is enough.
    double few = work_before_.back() / order_.schedule.positions(), enough = 0;
    for (const PartCost& cost : again_) enough += cost.work();
    std::optional<std::vector<std::size_t>> cuts = cuts_below(enough);
    if (!cuts) return std::nullopt;
    constexpr double kNear = 1e-3;
    while (enough - few > kNear * enough) {
      const double middle = (few + enough) / 2;
      if (auto found = cuts_below(middle)) {
        cuts = std::move(found);
        enough = middle;
      } else {
        few = middle;
      }
    }
    return of(*cuts);
  }

 private:
  std::size_t stage_at(std::size_t position) const {
    return static_cast<std::size_t>(order_.schedule.stage_at(static_cast<std::int32_t>(position), 0));
  }

  // Runs as long as they may be, one after the other: a shorter one leaves more to those that follow.
  std::optional<std::vector<std::size_t>> cuts_below(double seconds) const {
    const auto positions = static_cast<std::size_t>(order_.schedule.positions());
    std::vector<std::size_t> cuts;
    std::size_t from = 0;
    for (std::size_t k = 0; k < positions; ++k) {
      // The longest that is short enough, and leaves a part for each of the others.
      std::size_t end = from, most = kept_.size() - (positions - 1 - k);
      while (end < most) {
        const std::size_t middle = (end + most + 1) / 2;
        if (seconds_of(from, middle, stage_at(k), seconds, nullptr) <= seconds)
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

  // What a run takes at least with what fits; the layers that it does again then. `most`: longer is as good as never.
  double seconds_of(std::size_t first, std::size_t end, std::size_t stage, double most,
                    std::vector<std::string>* chosen) const {
    const double as_kept = work_before_[end] - work_before_[first];
    if (as_kept > most) return kNever;
    const double in_flight = order_.in_flight[stage];
    double bytes = first > 0 ? in_flight * kept_[first - 1].sent : 0, working = 0, working_again = 0;
    for (std::size_t p = first; p < end; ++p) {
      const PartCost& cost = kept_[p];
      bytes += cost.parameters + cost.gradients + cost.optimizer + in_flight * cost.kept;
      working = std::max(working, cost.working);
      working_again = std::max(working_again, again_[p].working);
    }
    if (bytes + working / runs_ <= room_ / runs_) return as_kept;
    partition::Items items;
    std::vector<std::size_t> part_of_item;
    for (std::size_t p = first; p < end; ++p) {
      if (layers_[p].empty()) continue;
      if (items.empty() || layers_[part_of_item.back()] != layers_[p]) {
        items.push_back({{0, 0}, {0, 0}});
        part_of_item.push_back(p);
      }
      items.back()[1].cost += again_[p].work() - kept_[p].work();
      items.back()[1].bytes -= in_flight * (kept_[p].kept - again_[p].kept);
    }
    const double left = (room_ - std::max(working, working_again)) / runs_ - bytes;
    partition::Choices found = partition::choose(items, left);
    if (chosen != nullptr) found = partition::choose_exactly(items, left, found, kMostSteps);
    if (found.options.empty() && !items.empty()) return kNever;
    if (items.empty()) return kNever;
    for (std::size_t i = 0; chosen != nullptr && i < items.size(); ++i)
      if (found.options[i] == 1) chosen->push_back(layers_[part_of_item[i]]);
    return as_kept + found.cost;
  }

  std::optional<ChosenLayers> of(const std::vector<std::size_t>& cuts) const {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < cuts.size(); ++k)
      seconds_of(k == 0 ? 0 : cuts[k - 1], cuts[k], stage_at(k), kNever, &names);
    if (names.empty()) return std::nullopt;
    const std::set<std::string> repeated(names.begin(), names.end());
    ChosenLayers made;
    for (std::size_t p = 0; p < kept_.size(); ++p) {
      const bool repeats = repeated.contains(layers_[p]);
      made.costs.push_back(repeats ? again_[p] : kept_[p]);
      if (repeats && (made.layers.empty() || made.layers.back() != layers_[p]))
        made.layers.push_back(layers_[p]);
    }
    // Of cuts that are as good the runs are the most alike.
    const StagedCosts staged(made.costs, room_);
    made.cuts = cut_within_room(staged, order_).value_or(cuts);
    return made;
  }

  static constexpr std::int32_t kMostSteps = 2000;

  const PartCosts &kept_, &again_;
  const std::span<const std::string> layers_;
  const Unfolded& order_;
  const double room_, runs_;
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
