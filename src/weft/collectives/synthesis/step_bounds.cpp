#include "weft/collectives/synthesis/step_bounds.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::synthesis {
namespace {

constexpr std::int32_t kMostForAllCuts = 12;       // devices
constexpr std::int64_t kMostCutWork = 20'000'000;  // limits examined

class CutEvaluator {
 public:
  CutEvaluator(const StepNetwork& network, const StepProblem& problem, bool with_idle)
      : network_(network), problem_(problem), with_idle_(with_idle), distances_(step_distances(network)) {}

  void consider(const std::vector<char>& inside) {
    // All copies of a kind have the same source and targets.
    std::vector<const StepChunk*> leaving;
    for (std::size_t i = 0; i < problem_.chunks.size(); i += static_cast<std::size_t>(problem_.copies)) {
      const StepChunk& chunk = problem_.chunks[i];
      if (inside[static_cast<std::size_t>(chunk.source)] &&
          std::ranges::any_of(chunk.targets,
                              [&](std::int32_t t) { return !inside[static_cast<std::size_t>(t)]; }))
        leaving.push_back(&chunk);
    }
    if (leaving.empty()) return;
    StepCut cut{{}, static_cast<std::int64_t>(leaving.size()) * problem_.copies, capacity_out(inside), 0};
    if (with_idle_) cut.idle = idle_steps(inside, leaving);
    if (best_.chunks > 0 && cut.rounds() + cut.idle <= (best_.rounds() + best_.idle) * (1 + 1e-9)) return;
    best_ = std::move(cut);
    for (std::size_t i = 0; i < inside.size(); ++i)
      if (inside[i]) best_.devices.push_back(static_cast<std::int32_t>(i));
  }

  StepCut take() { return std::move(best_); }
  bool tired() const { return work_ > kMostCutWork; }

 private:
  // Steps before the first chunk can reach an outgoing edge, and after the last must have left. A
  // chunk that crosses the cut several times has crossed it once by then.
  std::int32_t idle_steps(const std::vector<char>& inside,
                          const std::vector<const StepChunk*>& leaving) const {
    std::vector<std::int32_t> to_edge(inside.size(), network_.devices), from_edge(to_edge);
    for (const StepEdge& edge : network_.edges) {
      if (!crosses(edge, inside)) continue;
      for (std::int32_t device = 0; device < network_.devices; ++device) {
        std::int32_t& there = to_edge[static_cast<std::size_t>(device)];
        std::int32_t& back = from_edge[static_cast<std::size_t>(device)];
        there = std::min(there, distance(device, edge.from));
        back = std::min(back, distance(edge.to, device));
      }
    }
    std::int32_t before = network_.devices, after = network_.devices;
    for (const StepChunk* chunk : leaving) {
      std::int32_t goes = 0;
      for (const std::int32_t target : chunk->targets)
        if (!inside[static_cast<std::size_t>(target)])
          goes = std::max(goes, from_edge[static_cast<std::size_t>(target)]);
      before = std::min(before, to_edge[static_cast<std::size_t>(chunk->source)]);
      after = std::min(after, goes);
    }
    return before + after;
  }

  std::int32_t distance(std::int32_t from, std::int32_t to) const {
    return distances_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }

  static bool crosses(const StepEdge& edge, const std::vector<char>& inside) {
    return inside[static_cast<std::size_t>(edge.from)] && !inside[static_cast<std::size_t>(edge.to)];
  }

  // Covers the outgoing edges with limits, greedily by capacity per edge. Any cover bounds the
  // capacity; if every edge has one limit, the cover is unique.
  double capacity_out(const std::vector<char>& inside) {
    std::vector<char> open(network_.edges.size(), 0);
    std::size_t left = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      open[i] = crosses(network_.edges[i], inside);
      left += static_cast<std::size_t>(open[i]);
    }
    double capacity = 0;
    while (left > 0) {
      const StepLimit* cheapest = nullptr;
      double least = 0;
      for (const StepLimit& limit : network_.limits) {
        ++work_;
        const auto covers = std::ranges::count_if(
            limit.edges, [&](std::int32_t edge) { return open[static_cast<std::size_t>(edge)] != 0; });
        if (covers == 0) continue;
        const double price = limit.capacity / static_cast<double>(covers);
        if (!cheapest || price < least) cheapest = &limit, least = price;
        if (limit.edges.size() == 1 && covers == 1 && network_.limits.size() == network_.edges.size()) break;
      }
      if (!cheapest) return 1e300;  // an edge without a limit
      capacity += cheapest->capacity;
      for (const std::int32_t edge : cheapest->edges) {
        left -= static_cast<std::size_t>(open[static_cast<std::size_t>(edge)]);
        open[static_cast<std::size_t>(edge)] = 0;
      }
    }
    return capacity;
  }

  const StepNetwork& network_;
  const StepProblem& problem_;
  bool with_idle_;
  std::int64_t work_ = 0;  // limits examined
  std::vector<std::vector<std::int32_t>> distances_;
  StepCut best_;
};

}  // namespace

std::int32_t least_steps(const StepNetwork& network, const StepProblem& problem) {
  const auto distances = step_distances(network);
  std::int32_t most = 0;
  for (const StepChunk& chunk : problem.chunks)
    for (const std::int32_t target : chunk.targets)
      most =
          std::max(most, distances[static_cast<std::size_t>(chunk.source)][static_cast<std::size_t>(target)]);
  return most;
}

StepCut narrowest_cut(const StepNetwork& network, const StepProblem& problem, bool with_idle) {
  CutEvaluator judge(network, problem, with_idle);
  const auto devices = static_cast<std::size_t>(network.devices);
  std::vector<char> inside(devices);
  if (network.devices <= kMostForAllCuts) {
    for (std::uint32_t set = 1; set + 1 < (1U << devices); ++set) {
      for (std::size_t i = 0; i < devices; ++i) inside[i] = static_cast<char>(set >> i & 1U);
      judge.consider(inside);
    }
    return judge.take();
  }
  const auto distances = step_distances(network);
  // Every cut is a bound. On networks with thousands of edges only as many as the limit allows are
  // tried.
  for (std::size_t centre = 0; centre < devices && !judge.tired(); ++centre)
    for (std::int32_t radius = 0;; ++radius) {
      std::size_t size = 0;
      for (std::size_t i = 0; i < devices; ++i) {
        inside[i] = distances[centre][i] >= 0 && distances[centre][i] <= radius;
        size += static_cast<std::size_t>(inside[i]);
      }
      if (size == devices) break;
      judge.consider(inside);
      for (char& in : inside) in = !in;
      judge.consider(inside);
    }
  return judge.take();
}

std::optional<std::string> refute_by_counting(const StepNetwork& network, const StepProblem& problem,
                                              std::int32_t steps, std::int32_t rounds) {
  const std::int32_t least = least_steps(network, problem);
  if (least > steps) return fmt::format("some chunk has {} steps to go", least);
  const StepCut cut = narrowest_cut(network, problem, true);
  const std::int32_t usable = std::max(0, rounds - cut.idle);
  if (cut.rounds() <= usable * (1 + 1e-9)) return std::nullopt;
  return fmt::format("devices {} have {} chunks for the others, and {} can leave in the {} usable rounds",
                     fmt::join(cut.devices, " "), cut.chunks, std::floor(cut.capacity * usable * (1 + 1e-9)),
                     usable);
}

}  // namespace weft::synthesis
