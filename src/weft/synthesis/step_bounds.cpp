#include "weft/synthesis/step_bounds.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::synthesis {
namespace {

constexpr std::int32_t kMostForAllCuts = 12;  // devices

// A chunk that all of a kind's copies stand for.
struct KindOfChunk {
  const StepChunk* chunk;
  std::int64_t copies;
};

class CutJudge {
 public:
  CutJudge(const StepNetwork& network, const StepProblem& problem) : network_(network) {
    const auto copies = static_cast<std::size_t>(problem.copies);
    for (std::size_t i = 0; i < problem.chunks.size(); i += copies)
      kinds_.push_back({&problem.chunks[i], problem.copies});
  }

  void consider(const std::vector<char>& inside) {
    std::int64_t chunks = 0;
    for (const KindOfChunk& kind : kinds_) {
      if (!inside[static_cast<std::size_t>(kind.chunk->source)]) continue;
      const bool leaves = std::ranges::any_of(kind.chunk->targets, [&](std::int32_t target) {
        return !inside[static_cast<std::size_t>(target)];
      });
      if (leaves) chunks += kind.copies;
    }
    if (chunks == 0) return;
    const double capacity = capacity_out(inside);
    if (capacity > 0 && static_cast<double>(chunks) / capacity <= best_.rounds() * (1 + 1e-9) && best_.chunks > 0) return;
    best_ = {{}, chunks, capacity};
    for (std::size_t i = 0; i < inside.size(); ++i)
      if (inside[i]) best_.devices.push_back(static_cast<std::int32_t>(i));
  }

  StepCut take() { return std::move(best_); }

 private:
  // Limits are taken until every edge that leaves is under one, the cheapest for an edge first. Any such
  // cover bounds what can leave; where every edge has one limit there is no other.
  double capacity_out(const std::vector<char>& inside) const {
    std::vector<char> open(network_.edges.size(), 0);
    std::size_t left = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const StepEdge& edge = network_.edges[i];
      open[i] = inside[static_cast<std::size_t>(edge.from)] && !inside[static_cast<std::size_t>(edge.to)];
      left += static_cast<std::size_t>(open[i]);
    }
    double capacity = 0;
    while (left > 0) {
      const StepLimit* cheapest = nullptr;
      double least = 0;
      for (const StepLimit& limit : network_.limits) {
        const auto covers = std::ranges::count_if(limit.edges, [&](std::int32_t edge) { return open[static_cast<std::size_t>(edge)] != 0; });
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
  std::vector<KindOfChunk> kinds_;
  StepCut best_;
};

}  // namespace

std::int32_t least_steps(const StepNetwork& network, const StepProblem& problem) {
  const auto distances = step_distances(network);
  std::int32_t most = 0;
  for (const StepChunk& chunk : problem.chunks)
    for (const std::int32_t target : chunk.targets)
      most = std::max(most, distances[static_cast<std::size_t>(chunk.source)][static_cast<std::size_t>(target)]);
  return most;
}

StepCut narrowest_cut(const StepNetwork& network, const StepProblem& problem) {
  CutJudge judge(network, problem);
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
  for (std::size_t centre = 0; centre < devices; ++centre)
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
  const StepCut cut = narrowest_cut(network, problem);
  if (cut.rounds() <= rounds * (1 + 1e-9)) return std::nullopt;
  return fmt::format("devices {} have {} chunks for the others, and {} of them can leave in {} rounds",
                     fmt::join(cut.devices, " "), cut.chunks, std::floor(cut.capacity * rounds * (1 + 1e-9)), rounds);
}

}  // namespace weft::synthesis
