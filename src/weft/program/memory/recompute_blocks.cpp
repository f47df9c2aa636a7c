#include "weft/program/memory/recompute_blocks.h"

#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "weft/program/memory/recompute_states.h"

namespace weft::memory {
namespace {

using Kind = RecomputeStep::Kind;

// Blocks are joined until there are at most this many: the chain solver takes cubic time.
constexpr std::size_t kMostBlocks = 200;
constexpr std::size_t kMostBlockNodes = 12;  // of a joined block, and of any block
constexpr std::size_t kAllWaysNodes = 6;     // up to here, every subset of the nodes is a way
// Table entries of the chain solver, and decisions to fill them: 64 MB and half a second.
constexpr double kMostCells = 8e6, kMostDecisions = 4.5e8;
constexpr double kNoPath = std::numeric_limits<double>::infinity();

std::int64_t units_of(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit; }

// The cost of all B from `there`, for each amount of memory up to `enough`.
std::vector<double> costs_from(const RecomputeModel& model, std::uint32_t there, std::int64_t enough) {
  std::vector<double> costs(static_cast<std::size_t>(enough) + 1);
  const auto cost = [&](std::int64_t memory) {
    const auto path = cheapest_path(model, memory, there);
    return path ? path->cost : kNoPath;
  };
  // A monotonic step function: if both ends are equal, so is everything between.
  const auto fill = [&](const auto& self, std::int64_t low, std::int64_t high) -> void {
    const double at_low = costs[static_cast<std::size_t>(low)],
                 at_high = costs[static_cast<std::size_t>(high)];
    if (high - low < 2) return;
    const std::int64_t middle = low + (high - low) / 2;
    if (at_low == at_high) {
      std::fill(costs.begin() + low, costs.begin() + high, at_low);
      return;
    }
    costs[static_cast<std::size_t>(middle)] = cost(middle);
    self(self, low, middle);
    self(self, middle, high);
  };
  costs.front() = cost(0);
  costs.back() = cost(enough);
  fill(fill, 0, enough);
  return costs;
}

// Whether `way` is dominated by `other`: it holds no less and costs no less, for any memory.
bool needless(const BlockOption& way, const BlockOption& other) {
  if (way.bytes < other.bytes || way.peak < other.peak) return false;
  for (std::size_t m = 0; m < way.after.size(); ++m)
    if (way.dropped + way.after[m] < other.dropped + other.after[m]) return false;
  return true;
}

BlockKind kind_of(RecomputeModel model, std::int64_t base) {
  BlockKind kind;
  std::int64_t enough = *std::ranges::max_element(model.gradients_during);
  for (const std::int64_t size : model.size) enough += size;
  kind.end_size = model.size.back();
  kind.end_forward = model.forward.back();
  for (const double forward : model.forward) kind.forward += forward;
  kind.cold = costs_from(model, 0, enough);
  std::tie(kind.peak_first, kind.peak_next) = forward_peaks(model, 1u << (model.nodes - 1), base);
  if (!model.loss) {
    std::vector<BlockOption> ways;
    for (const std::uint32_t kept : kept_sets(model)) {
      BlockOption way{kept, 0, 0, forward_peaks(model, kept, base).first, costs_from(model, kept, enough)};
      for (std::size_t v = 0; v + 1 < model.nodes; ++v)
        if ((kept >> v & 1) != 0)
          way.bytes += model.size[v];
        else
          way.dropped += model.forward[v];
      ways.push_back(std::move(way));
    }
    // Drops ways that an earlier one dominates; of two equal ways the later goes. The first always
    // stays, because advances use it.
    for (BlockOption& way : ways)
      if (kind.ways.empty() ||
          std::ranges::none_of(kind.ways, [&](const BlockOption& other) { return needless(way, other); }))
        kind.ways.push_back(std::move(way));
  }
  kind.model = std::move(model);
  return kind;
}

bool same_model(const RecomputeModel& a, const RecomputeModel& b) {
  return a.loss == b.loss && a.forward == b.forward && a.size == b.size && a.inputs == b.inputs &&
         a.gradients == b.gradients && a.gradients_during == b.gradients_during &&
         a.last_base_reader == b.last_base_reader;
}

void number_stretches(Blocks& result, const std::vector<std::size_t>& kinds) {
  const std::size_t count = kinds.size();
  result.stretch_of.assign((count + 1) * (count + 1), 0);
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> known;  // by a shorter range and its next kind
  for (std::size_t length = 1; length <= count; ++length) {
    for (std::size_t i = 0; i + length <= count; ++i) {
      const std::size_t j = i + length, at = i * (count + 1) + j;
      const std::size_t shorter = length == 1 ? ~std::size_t{0} : result.stretch_of[at - 1];
      const auto [place, is_new] = known.try_emplace({shorter, kinds[j - 1]}, result.stretches.size());
      if (is_new) result.stretches.emplace_back(i, j);
      result.stretch_of[at] = place->second;
    }
  }
}

// The number of memory entries that the tables of all ranges can afford.
double affordable_rows(const Blocks& result) {
  double choices = 0;
  for (const auto& [i, j] : result.stretches) choices += static_cast<double>(j - i + 2);
  return std::min(kMostCells / static_cast<double>(2 * result.stretches.size()),
                  kMostDecisions / (2 * choices));
}

}  // namespace

std::optional<std::vector<std::pair<std::size_t, std::size_t>>> block_bounds(
    std::span<const RecomputeNode> nodes, std::size_t most) {
  const std::vector<std::int32_t> cuts = cut_nodes(nodes);
  const std::size_t even =
      cuts.size() > most ? std::min((nodes.size() + most - 1) / most, kMostBlockNodes) : 0;
  std::vector<std::pair<std::size_t, std::size_t>> bounds;
  std::size_t begin = 0;
  for (std::size_t c = 0; c < cuts.size(); ++c) {
    const std::size_t end = static_cast<std::size_t>(cuts[c]) + 1;
    if (end - begin > kMostBlockNodes) return {};
    if (c + 1 < cuts.size() && static_cast<std::size_t>(cuts[c + 1]) + 1 - begin <= even) continue;
    bounds.emplace_back(begin, end);
    begin = end;
  }
  return bounds;
}

// All subsets for a small block; otherwise increasing sets of the nodes with the most time per
// byte.
std::vector<std::uint32_t> kept_sets(const RecomputeModel& model) {
  const std::size_t inner = model.nodes - 1;
  const std::uint32_t end = 1u << inner;
  std::vector<std::uint32_t> sets;
  if (model.nodes <= kAllWaysNodes) {
    for (std::uint32_t kept = 0; kept < end; ++kept) sets.push_back(kept | end);
    return sets;
  }
  std::vector<std::size_t> order(inner);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto worth = [&](std::size_t v) {
    return model.forward[v] / static_cast<double>(std::max<std::int64_t>(model.size[v], 1));
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return worth(a) > worth(b); });
  sets.push_back(end);
  for (const std::size_t v : order) sets.push_back(sets.back() | 1u << v);
  return sets;
}

std::pair<std::int64_t, std::int64_t> forward_peaks(const RecomputeModel& model, std::uint32_t kept,
                                                    std::int64_t base) {
  std::int64_t used = 0, without = 0, with = 0;
  for (const RecomputeStep& step : forward_steps(model, kept, true)) {
    if (step.node < 0) {
      base = 0;
      continue;
    }
    const std::int64_t size = model.size[static_cast<std::size_t>(step.node)];
    used += step.kind == Kind::forward ? size : -size;
    without = std::max(without, used);
    with = std::max(with, used + base);
  }
  return {without, with};
}

std::vector<RecomputeStep> forward_steps(const RecomputeModel& model, std::uint32_t kept, bool drops_base) {
  std::vector<RecomputeStep> steps;
  std::vector<std::size_t> readers(model.nodes);
  for (std::size_t v = 0; v < model.nodes; ++v) readers[v] = model.readers[v].size();
  for (std::size_t v = 0; v < model.nodes; ++v) {
    const auto place = static_cast<std::int32_t>(v);
    steps.push_back({Kind::forward, place});
    if (drops_base && place == model.last_base_reader) steps.push_back({Kind::drop, -1});
    for (const std::int32_t input : model.inputs[v])
      if (--readers[static_cast<std::size_t>(input)] == 0 && (kept >> input & 1) == 0)
        steps.push_back({Kind::drop, input});
  }
  return steps;
}

std::optional<Blocks> cut_into_blocks(const RecomputeGraph& graph) {
  const auto found = block_bounds(graph.nodes, kMostBlocks);
  if (!found) return {};
  const auto& bounds = *found;
  Blocks result;
  const auto model_in_units = [&](std::size_t b, std::vector<RecomputeNode>& nodes) {
    const auto [begin, end] = bounds[b];
    return model_of(nodes, begin, end, begin == 0 ? 0 : nodes[begin - 1].size, b + 1 == bounds.size());
  };
  // First in bytes, since repetitions in bytes are repetitions in any unit.
  std::vector<RecomputeNode> nodes = graph.nodes;
  std::vector<RecomputeModel> models;
  std::vector<std::int64_t> bases;
  std::vector<std::size_t> kinds;
  for (std::size_t b = 0; b < bounds.size(); ++b) {
    RecomputeModel model = model_in_units(b, nodes);
    const std::int64_t base = bounds[b].first == 0 ? 0 : nodes[bounds[b].first - 1].size;
    std::size_t kind = 0;
    while (kind < models.size() && !(bases[kind] == base && same_model(models[kind], model))) ++kind;
    if (kind == models.size()) models.push_back(std::move(model)), bases.push_back(base);
    kinds.push_back(kind);
  }
  std::int64_t gcd = 0;
  for (const RecomputeNode& node : nodes) gcd = std::gcd(gcd, node.size);
  gcd = std::max<std::int64_t>(gcd, 1);
  const RecomputeModel whole = model_of(nodes, 0, nodes.size(), 0, true);
  std::int64_t all = 0, most = 0;
  for (std::size_t v = 0; v < nodes.size(); ++v)
    most = std::max(most, (all += nodes[v].size) + whole.gradients_during[v]);
  number_stretches(result, kinds);
  const double wanted = static_cast<double>(most) / static_cast<double>(gcd);
  result.unit = gcd * static_cast<std::int64_t>(std::max(1.0, wanted / affordable_rows(result) + 0.999));
  result.most = units_of(most, result.unit);
  for (RecomputeNode& node : nodes) node.size = units_of(node.size, result.unit);
  for (std::size_t b = 0; b < bounds.size(); ++b) {
    if (kinds[b] == result.kinds.size()) {
      const std::int64_t base = bounds[b].first == 0 ? 0 : nodes[bounds[b].first - 1].size;
      result.kinds.push_back(kind_of(model_in_units(b, nodes), base));
    }
    result.blocks.push_back({bounds[b].first, bounds[b].second, kinds[b]});
  }
  return result;
}

}  // namespace weft::memory
