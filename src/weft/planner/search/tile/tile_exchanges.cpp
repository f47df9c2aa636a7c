#include "weft/planner/search/tile/tile_exchanges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/units.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/search/tile/cut_in_tiles.h"
#include "weft/planner/search/tile/exposed_exchanges.h"
#include "weft/planner/search/tile/tile_region.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::ValueId;

// Indices to try: those that can split the most communicated bytes and the most nodes around them.
constexpr std::size_t kIndicesTried = 2;
// Of those, candidates tried with more than two tiles.
constexpr std::size_t kWaysInMoreTiles = 3;
// Least exposed share of an exchange that is worth tiling.
constexpr double kExposed = 0.2;
// Largest tiled plan, so that its simulation stays fast.
constexpr std::size_t kMostTiledNodes = 150'000;
// Total over all plans tried after the first; simulation time grows with it.
constexpr std::size_t kMostNodesTried = 25'000;

// A candidate for tiling, without the number of tiles.
struct TileCandidate {
  TileIndex along;
  std::vector<bool> region;
};

// Number of blocks of an index that ranks hold, over all axes that slice it in any value.
std::int64_t blocks_of(const distribute::DistributedPlan& plan, Symbol index) {
  std::int64_t blocks = 1;
  for (std::size_t axis = 0; axis < plan.mesh.axes.size(); ++axis)
    if (std::ranges::any_of(plan.layouts,
                            [&](const plan::Layout& layout) { return layout.axes[axis].slices(index); }))
      blocks *= plan.mesh.axes[axis].ranks;
  return blocks;
}

// Ranks an index before plans tiled along it are simulated.
struct TileProspect {
  TileIndex along;
  double bytes = 0;          // of the collectives that can be tiled
  std::ptrdiff_t nodes = 0;  // around them that can stay tiled
  std::vector<NodeId> collectives = {};
};

// Nothing if the index has too few elements, or if no product can be tiled with the collectives.
std::optional<TileProspect> prospect_of(const distribute::DistributedPlan& plan,
                                        const std::vector<bool>& wanted, const TileIndex& along) {
  TileProspect found{.along = along};
  for (const NodeId node : collectives_to_cut(plan, along)) {
    if (!wanted[node.value]) continue;
    const plan::Type type = plan.graph.type(plan.graph.result(node));
    if (type.size_of(along.index) < 2 * along.blocks || type.size_of(along.index) % along.blocks != 0)
      return {};
    found.bytes +=
        static_cast<double>(type.elements()) * static_cast<double>(plan::size_in_bytes(type.dtype));
    found.collectives.push_back(node);
  }
  if (found.collectives.empty()) return {};
  const std::vector<bool> region = tile_region(plan, along, found.collectives, TileReach::products);
  found.nodes = std::ranges::count(region, true);
  if (found.nodes == 0) return {};
  return found;
}

// Best first. Ties are broken by name, so that all ranks get the same order.
std::vector<TileProspect> prospects(const distribute::DistributedPlan& plan,
                                    const std::vector<bool>& wanted) {
  std::set<Symbol> indices;
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n)
    if (wanted[n])
      for (const plan::Dim& dim : plan.graph.type(plan.graph.result(NodeId(n))).dims)
        indices.insert(dim.index);
  std::vector<TileProspect> found;
  for (const Symbol index : indices)
    for (const std::int64_t blocks : std::set<std::int64_t>{1, blocks_of(plan, index)})
      if (auto prospect = prospect_of(plan, wanted, {index, blocks})) found.push_back(std::move(*prospect));
  std::ranges::sort(found, [&](const TileProspect& a, const TileProspect& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    if (a.nodes != b.nodes) return a.nodes > b.nodes;
    if (a.along.blocks != b.along.blocks) return a.along.blocks < b.along.blocks;
    return plan.graph.text(a.along.index) < plan.graph.text(b.along.index);
  });
  if (found.size() > kIndicesTried) found.resize(kIndicesTried);
  return found;
}

std::vector<TileCandidate> ways_to_try(const distribute::DistributedPlan& plan,
                                       const std::vector<bool>& wanted) {
  std::vector<TileCandidate> ways;
  for (const TileProspect& prospect : prospects(plan, wanted))
    for (const TileReach reach : {TileReach::near, TileReach::products, TileReach::all}) {
      TileCandidate way{prospect.along, tile_region(plan, prospect.along, prospect.collectives, reach)};
      const bool is_new = std::ranges::none_of(ways, [&](const TileCandidate& other) {
        return other.along == way.along && other.region == way.region;
      });
      if (is_new && std::ranges::find(way.region, true) != way.region.end()) ways.push_back(std::move(way));
    }
  return ways;
}

// By node: exchanges of one value that are exposed; all, if tiles are requested and none is
// exposed.
Result<std::vector<bool>> exchanges_to_cut(const PredictedPlan& before, bool is_asked_for) {
  WEFT_TRY(shares, exposed_shares(before));
  const plan::Graph& graph = before.plan.graph;
  std::vector<bool> all(graph.node_count()), exposed(graph.node_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(NodeId(n));
    all[n] = ops::find_communication(node.op()) != nullptr && node.result_count() == 1;
    exposed[n] = all[n] && shares[n] >= kExposed;
  }
  const bool any = std::ranges::find(exposed, true) != exposed.end();
  return is_asked_for && !any ? all : exposed;
}

// "24 all-reduces, 2 all-gathers"
std::string print_cut(const plan::Graph& graph, const std::vector<bool>& region) {
  std::map<std::string_view, std::size_t> counts;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(NodeId(n));
    const ops::Communication* const op = ops::find_communication(node.op());
    if (region[n] && op != nullptr && ops::collective_of(op->exchange(node))) ++counts[op->name()];
  }
  std::vector<std::string> said;
  for (const auto& [name, count] : counts)
    said.push_back(fmt::format("{} {}{}", count, name, count == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(said, ", "));
}

class TileSearch {
 public:
  TileSearch(const PredictedPlan& before, const Machine& machine, const TileOptions& options,
             const cost::StepCosts& costs)
      : before_(before), machine_(machine), options_(options), costs_(costs) {}

  Result<TiledExchanges> run() {
    TiledExchanges result;
    result.said = "no collective can be tiled along with a matrix product";
    WEFT_TRY(wanted, exchanges_to_cut(before_, options_.tiles > 0));
    const std::vector<TileCandidate> ways = ways_to_try(before_.plan, wanted);
    if (options_.tiles > 0) {
      for (const TileCandidate& way : ways) try_way(way, options_.tiles);
    } else {
      try_numbers(ways);
    }
    if (!best_) {
      if (!why_not_.empty()) result.said = why_not_;
      return result;
    }
    PredictedPlan made;
    made.plan = std::move(*best_);
    WEFT_TRY(prediction, predict(made.plan, /*quick=*/false));
    made.prediction = std::move(prediction);
    judge(std::move(made), result);
    return result;
  }

 private:
  Result<sim::Prediction> predict(const distribute::DistributedPlan& plan, bool quick) const {
    return sim::predict(
        plan.graph, plan.mesh, plan.layouts, costs_,
        {.overlap = machine_.overlap, .timeline = !quick, .workers = machine_.workers, .quick = quick});
  }

  // Tries all candidates with two tiles, then the fastest with more tiles while that is faster.
  void try_numbers(std::span<const TileCandidate> ways) {
    std::vector<std::pair<double, const TileCandidate*>> quickest;
    for (const TileCandidate& way : ways) quickest.emplace_back(try_way(way, 2), &way);
    std::ranges::stable_sort(quickest, {}, [](const auto& tried) { return tried.first; });
    if (quickest.size() > kWaysInMoreTiles) quickest.resize(kWaysInMoreTiles);
    for (auto [seconds, way] : quickest)
      for (std::int64_t tiles = 4; tiles <= kMostTilesTried && std::isfinite(seconds); tiles *= 2) {
        const double now = try_way(*way, tiles);
        if (now >= seconds) break;
        seconds = now;
      }
  }

  // Seconds of a step; infinite if the plan cannot be tiled like this.
  double try_way(const TileCandidate& way, std::int64_t tiles) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const auto cut_nodes = static_cast<std::size_t>(std::ranges::count(way.region, true));
    const std::size_t nodes = before_.plan.graph.node_count() + cut_nodes * static_cast<std::size_t>(tiles);
    if (options_.tiles == 0 && (nodes > kMostTiledNodes || (best_ && nodes_tried_ + nodes > kMostNodesTried)))
      return kNever;
    nodes_tried_ += nodes;
    Result<distribute::DistributedPlan> made = cut_in_tiles(before_.plan, way.region, way.along, tiles);
    Result<sim::Prediction> prediction =
        made.ok() ? predict(*made, /*quick=*/true) : Result<sim::Prediction>(made.error());
    if (!prediction.ok()) {
      if (why_not_.empty()) why_not_ = prediction.error().message;
      return kNever;
    }
    const double seconds = prediction->seconds;
    if (seconds < best_seconds_) {
      best_seconds_ = seconds;
      best_ = std::move(*made);
      best_said_ = fmt::format("{} in {} tiles along {}{}", print_cut(before_.plan.graph, way.region), tiles,
                               before_.plan.graph.text(way.along.index),
                               way.along.blocks > 1 ? ", of every rank's block" : "");
    }
    return seconds;
  }

  void judge(PredictedPlan made, TiledExchanges& result) const {
    const double now = made.prediction.seconds, was = before_.prediction.seconds;
    const bool is_asked_for = options_.tiles > 0;
    if (!is_asked_for && !(now <= was * (1 - options_.least_gain))) {
      result.said = fmt::format("{}: {} instead of {}, less than {:.0f} % faster", best_said_,
                                print_seconds(now), print_seconds(was), 100 * options_.least_gain);
      return;
    }
    if (options_.memory_bytes > 0 &&
        made.prediction.peak_bytes > std::max(options_.memory_bytes, before_.prediction.peak_bytes)) {
      result.said =
          fmt::format("{}: {} per rank, too large", best_said_, print_bytes(made.prediction.peak_bytes));
      return;
    }
    result.said = fmt::format("{}: {} instead of {}", best_said_, print_seconds(now), print_seconds(was));
    result.plan = std::move(made);
  }

  const PredictedPlan& before_;
  const Machine& machine_;
  const TileOptions options_;
  const cost::StepCosts& costs_;
  std::optional<distribute::DistributedPlan> best_;
  std::string best_said_, why_not_;
  std::size_t nodes_tried_ = 0;
  double best_seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Result<TiledExchanges> tile_exchanges(const PredictedPlan& before, const Machine& machine,
                                      const TileOptions& options) {
  TiledExchanges result;
  if (before.plan.time) {
    result.said = "a step with micro-batches is not tiled again";
    return result;
  }
  const double exposed = before.prediction.exposed_communication_seconds;
  if (options.tiles == 0 && (!machine.overlap || exposed < options.least_gain * before.prediction.seconds)) {
    result.said = machine.overlap
                      ? fmt::format("{} of communication exposed: little to gain", print_seconds(exposed))
                      : "communication cannot overlap computation here";
    return result;
  }
  WEFT_TRY(costs, machine.costs(before.plan.mesh));
  return TileSearch(before, machine, options, costs).run();
}

}  // namespace weft::search
