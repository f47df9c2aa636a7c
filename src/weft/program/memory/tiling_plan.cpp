#include "weft/program/memory/tiling_plan.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/program/memory/tiling_cost.h"

namespace weft::memory {
namespace {

using Operators = std::vector<std::int32_t>;  // sorted

struct TiledStep {
  TilingStep step;
  double latency = std::numeric_limits<double>::infinity();
};

// Candidate tile sides: a few even divisions of the whole, which need the least traffic and memory;
// those rounded up to multiples of the native side, which compute least; and repeated halvings.
std::vector<std::int64_t> tile_sides(std::int64_t whole, std::int64_t native) {
  constexpr std::int64_t kMostParts = 12;
  std::vector<std::int64_t> sides;
  for (std::int64_t count = 1; count <= kMostParts; ++count) {
    const std::int64_t even = (whole + count - 1) / count, natives = (even + native - 1) / native * native;
    sides.push_back(even);
    if (natives < whole) sides.push_back(natives);
  }
  const std::int64_t least = std::max<std::int64_t>(1, std::min(whole, native / 4));
  for (std::int64_t side = whole; side >= least; side = (side + 1) / 2) {
    sides.push_back(side);
    if (side == 1) break;
  }
  std::ranges::sort(sides, std::greater<>());
  sides.erase(std::unique(sides.begin(), sides.end()), sides.end());
  return sides;
}

class TilingPlanner {
 public:
  explicit TilingPlanner(const TilingProblem& problem)
      : problem_(problem), maker_(problem.widths.size(), -1), readers_(problem.widths.size()) {
    for (std::size_t i = 0; i < problem.operators.size(); ++i) {
      const auto op = static_cast<std::int32_t>(i);
      maker_[static_cast<std::size_t>(problem.operators[i].output)] = op;
      for (const std::int32_t input : problem.operators[i].inputs)
        readers_[static_cast<std::size_t>(input)].push_back(op);
    }
  }

  Result<TilingPlan> run() {
    for (std::size_t op = 0; op < problem_.operators.size(); ++op) {
      groups_.push_back({static_cast<std::int32_t>(op)});
      if (best(groups_.back()).latency == kNoTile)
        return environment_error(fmt::format("no tile of operator {} fits the capacity of {} elements", op,
                                             print_exact(problem_.capacity)));
    }
    join();
    TilingPlan plan;
    for (const std::size_t group : in_order()) plan.steps.push_back(best(groups_[group]).step);
    retain(plan.steps);
    WEFT_TRY(price_found, price(problem_, plan.steps));
    plan.price = std::move(price_found);
    return plan;
  }

 private:
  static constexpr double kNoTile = std::numeric_limits<double>::infinity();
  static constexpr std::size_t kMostJoined = 40;

  const TilingOperator& at(std::int32_t op) const { return problem_.operators[static_cast<std::size_t>(op)]; }

  // Each operator is in one group, so a group must store what other groups read, or what is never
  // read.
  std::vector<bool> written(const Operators& group) const {
    std::vector<bool> is_written(problem_.widths.size());
    for (const std::int32_t op : group) {
      const auto& readers = readers_[static_cast<std::size_t>(at(op).output)];
      is_written[static_cast<std::size_t>(at(op).output)] =
          readers.empty() || std::ranges::any_of(readers, [&](std::int32_t reader) {
            return !std::ranges::binary_search(group, reader);
          });
    }
    return is_written;
  }

  TiledStep best_tile(const Operators& group, const TilingResidence& residence) const {
    TiledStep found;
    const auto shape = shape_of(problem_, group, written(group));
    if (!shape.ok()) return found;
    TilingStep step;
    step.operators = group;
    for (std::size_t t = 0; t < residence.after.size(); ++t)
      if (residence.after[t]) step.retained.push_back(static_cast<std::int32_t>(t));
    for (const std::int64_t width : tile_sides(shape->width, problem_.native_width))
      for (const std::int64_t height : tile_sides(shape->height, problem_.native_height))
        for (const std::int64_t depth : depths(*shape, width, height, residence)) {
          step.width = width, step.height = height, step.depth = depth;
          try_orders(*shape, step, residence, found);
        }
    return found;
  }

  // Strip depths that fit: the largest, one that divides the reduction evenly, and halvings.
  std::vector<std::int64_t> depths(const TilingShape& shape, std::int64_t width, std::int64_t height,
                                   const TilingResidence& residence) const {
    TilingStep step;
    step.width = width, step.height = height;
    const auto fits = [&](std::int64_t depth) {
      step.depth = depth;
      return elements_held(problem_, shape, step, residence) <= problem_.capacity;
    };
    if (!fits(1)) return {};
    std::int64_t low = 1, high = shape.deepest;
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      if (fits(middle))
        low = middle;
      else
        high = middle - 1;
    }
    std::vector<std::int64_t> found{low};
    const std::int64_t strips = (shape.deepest + low - 1) / low;
    found.push_back((shape.deepest + strips - 1) / strips);
    constexpr std::int64_t kLeastDepth = 4;
    for (std::int64_t depth = shape.deepest; depth >= kLeastDepth; depth = (depth + 1) / 2)
      if (depth < low) found.push_back(depth);
    std::ranges::sort(found, std::greater<>());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  void try_orders(const TilingShape& shape, const TilingStep& step, const TilingResidence& residence,
                  TiledStep& found) const {
    const std::int64_t columns = (shape.width + step.width - 1) / step.width,
                       rows = (shape.height + step.height - 1) / step.height;
    constexpr std::int64_t kMostPlannedTiles = 4096;
    if (rows * columns > kMostPlannedTiles && found.latency < kNoTile) return;
    // An order only helps if the next tile reads some data again: not the tile's own data, and not
    // strips that have passed.
    const bool keeps_any = std::ranges::any_of(shape.read, [&](const TilingSlice& slice) {
      const bool is_tile = slice.width == Extent::tile && slice.height == Extent::tile;
      return !is_tile && slice.reduction <= step.depth;
    });
    for (const TileOrder order : {TileOrder::plain, TileOrder::rows, TileOrder::columns}) {
      if (order != TileOrder::plain && (rows * columns == 1 || !keeps_any)) continue;
      const std::vector<std::int32_t> tiles = tile_order(shape, step, order);
      const double latency = latency_of(problem_, shape, step, residence, tiles);
      if (latency >= found.latency) continue;
      found = {step, latency};
      if (order != TileOrder::plain) found.step.order = tiles;
    }
  }

  const TiledStep& best(const Operators& group) {
    const auto [place, is_new] = known_.try_emplace(group);
    if (is_new) {
      const std::vector<bool> none(problem_.widths.size());
      place->second = best_tile(group, {none, none});
    }
    return place->second;
  }

  // Whether a path leads from one group to the other through a third: then they cannot be fused.
  bool circular(std::size_t a, std::size_t b) const {
    std::map<std::int32_t, std::size_t> group_of;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const std::int32_t op : groups_[g]) group_of[op] = g == b ? a : g;
    std::set<std::size_t> seen;
    std::vector<std::size_t> open{a};
    while (!open.empty()) {
      const std::size_t from = open.back();
      open.pop_back();
      for (const std::size_t g : from == a ? std::vector{a, b} : std::vector{from})
        for (const std::int32_t op : groups_[g])
          for (const std::int32_t reader : readers_[static_cast<std::size_t>(at(op).output)]) {
            const std::size_t to = group_of[reader];
            if (to == a && from != a) return true;
            if (to != a && seen.insert(to).second) open.push_back(to);
          }
    }
    return false;
  }

  bool touches(const Operators& a, const Operators& b) const {
    std::set<std::int32_t> tensors;
    for (const std::int32_t op : a) {
      tensors.insert(at(op).output);
      tensors.insert(at(op).inputs.begin(), at(op).inputs.end());
    }
    return std::ranges::any_of(b, [&](std::int32_t op) {
      return tensors.contains(at(op).output) ||
             std::ranges::any_of(at(op).inputs, [&](std::int32_t input) { return tensors.contains(input); });
    });
  }

  static Operators joined(const Operators& a, const Operators& b) {
    Operators both;
    std::ranges::merge(a, b, std::back_inserter(both));
    return both;
  }

  void join() {
    for (;;) {
      double most = 1e-9;
      std::pair<std::size_t, std::size_t> pair;
      for (std::size_t a = 0; a < groups_.size(); ++a)
        for (std::size_t b = a + 1; b < groups_.size(); ++b) {
          if (groups_[a].size() + groups_[b].size() > kMostJoined || !touches(groups_[a], groups_[b]))
            continue;
          const double apart = best(groups_[a]).latency + best(groups_[b]).latency;
          const double gain = apart - best(joined(groups_[a], groups_[b])).latency;
          if (gain > most && !circular(a, b)) most = gain, pair = {a, b};
        }
      if (pair.second == 0) return;
      groups_[pair.first] = joined(groups_[pair.first], groups_[pair.second]);
      groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(pair.second));
    }
  }

  // Topological order; a reader of the latest output comes next, so that it may find it in fast
  // memory.
  std::vector<std::size_t> in_order() const {
    std::vector<std::size_t> order;
    std::vector<bool> done(groups_.size());
    const auto group_with = [&](std::int32_t op) {
      return static_cast<std::size_t>(
          std::ranges::find_if(
              groups_, [&](const Operators& group) { return std::ranges::binary_search(group, op); }) -
          groups_.begin());
    };
    const auto is_ready = [&](std::size_t g) {
      for (const std::int32_t op : groups_[g])
        for (const std::int32_t input : at(op).inputs) {
          const std::int32_t maker = maker_[static_cast<std::size_t>(input)];
          if (maker < 0) continue;
          const std::size_t from = group_with(maker);
          if (from != g && !done[from]) return false;
        }
      return true;
    };
    while (order.size() < groups_.size()) {
      std::optional<std::size_t> next;
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (done[g] || !is_ready(g)) continue;
        const bool follows = !order.empty() && std::ranges::any_of(groups_[g], [&](std::int32_t op) {
          return std::ranges::any_of(at(op).inputs, [&](std::int32_t input) {
            const std::int32_t maker = maker_[static_cast<std::size_t>(input)];
            return maker >= 0 && std::ranges::binary_search(groups_[order.back()], maker);
          });
        });
        if (!next || follows) next = g;
        if (follows) break;
      }
      done[*next] = true;
      order.push_back(*next);
    }
    return order;
  }

  // Retains a tensor that a step makes only for the next, or that both read, if that reduces their
  // total time.
  void retain(std::vector<TilingStep>& steps) {
    std::vector<TilingResidence> residences(
        steps.size(), {std::vector<bool>(problem_.widths.size()), std::vector<bool>(problem_.widths.size())});
    std::vector<double> latencies;
    for (const TilingStep& step : steps) latencies.push_back(best(step.operators).latency);
    for (std::size_t s = 0; s + 1 < steps.size(); ++s) {
      for (const std::int32_t tensor : candidates(steps, s)) {
        TilingResidence here = residences[s], next = residences[s + 1];
        here.after[static_cast<std::size_t>(tensor)] = next.before[static_cast<std::size_t>(tensor)] = true;
        const TiledStep first = best_tile(steps[s].operators, here),
                        second = best_tile(steps[s + 1].operators, next);
        if (first.latency + second.latency >= latencies[s] + latencies[s + 1] - 1e-9) continue;
        steps[s] = first.step, steps[s + 1] = second.step;
        latencies[s] = first.latency, latencies[s + 1] = second.latency;
        residences[s] = std::move(here), residences[s + 1] = std::move(next);
      }
    }
  }

  std::vector<std::int32_t> candidates(const std::vector<TilingStep>& steps, std::size_t s) const {
    const auto reads = [&](const TilingStep& step, std::int32_t tensor) {
      return std::ranges::any_of(step.operators, [&](std::int32_t op) {
        return std::ranges::find(at(op).inputs, tensor) != at(op).inputs.end();
      });
    };
    std::vector<std::int32_t> found;
    for (std::size_t t = 0; t < problem_.widths.size(); ++t) {
      const auto tensor = static_cast<std::int32_t>(t);
      if (problem_.elements(tensor) > problem_.capacity || !reads(steps[s + 1], tensor)) continue;
      const bool makes =
          maker_[t] >= 0 && std::ranges::find(steps[s].operators, maker_[t]) != steps[s].operators.end();
      bool later = false;
      for (std::size_t after = s + 2; after < steps.size(); ++after)
        later = later || reads(steps[after], tensor);
      // A retained output does not reach slow memory, so later steps could not read it.
      if (makes ? !later : reads(steps[s], tensor)) found.push_back(tensor);
    }
    return found;
  }

  const TilingProblem& problem_;
  std::vector<std::int32_t> maker_;
  std::vector<std::vector<std::int32_t>> readers_;
  std::vector<Operators> groups_;
  std::map<Operators, TiledStep> known_;
};

}  // namespace

Result<TilingPlan> plan_tiling(const TilingProblem& problem) {
  WEFT_TRY_STATUS(check(problem));
  return TilingPlanner(problem).run();
}

}  // namespace weft::memory
