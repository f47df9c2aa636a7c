#include "weft/collectives/synthesis/concurrent_flow.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "weft/collectives/synthesis/index.h"

namespace weft::synthesis {
namespace {

constexpr double kNoPath = std::numeric_limits<double>::infinity();
constexpr double kFirstStep = 0.25, kLastStep = 0.002;
constexpr std::int32_t kPatience = 24;  // phases without progress before the step shrinks

class Router {
 public:
  Router(const FlowNetwork& network, const Deadline& deadline, FlowPaths paths)
      : network_(network),
        deadline_(deadline),
        keeps_(paths == FlowPaths::yes),
        leaving_(at(network.nodes)),
        length_(network.capacities.size()) {
    for (std::size_t a = 0; a < network.arcs.size(); ++a)
      leaving_[at(network.arcs[a].from)].push_back(static_cast<std::int32_t>(a));
    for (std::size_t c = 0; c < length_.size(); ++c) length_[c] = 1 / network.capacities[c];
    distance_.resize(at(network.nodes));
    by_.resize(at(network.nodes));
  }

  ConcurrentFlow run(double gap) {
    ConcurrentFlow best;
    best.bound = kNoPath;
    if (!scale_demand()) return best;
    double step = kFirstStep;
    std::int32_t idle = 0;
    forget();
    while (true) {
      const double bound = phase(step);
      if (bound == kNoPath) break;  // deadline reached within the phase
      ++phases_;
      bool better = false;
      if (bound < best.bound * (1 - 1e-5)) better = true;
      best.bound = std::min(best.bound, bound);
      const double rate = phases_ * demand_ / congestion();
      if (rate > best.rate * (1 + 1e-5)) better = true;
      if (rate > best.rate) {
        best.rate = rate;
        kept_ = taken_;
        kept_phases_ = phases_;
      }
      idle = better ? 0 : idle + 1;
      if (best.rate >= best.bound * (1 - gap) || deadline_.over()) break;
      if (idle < kPatience) continue;
      // Continue from the current lengths with smaller steps, but drop the less accurate flow
      // routed so far.
      step /= 2;
      idle = 0;
      if (step < kLastStep) break;
      forget();
    }
    best.bound = std::max(best.bound, best.rate);
    if (keeps_) write_paths(best);
    return best;
  }

 private:
  double arc_length(std::int32_t arc) const {
    double sum = 0;
    for (const std::int32_t use : network_.arcs[at(arc)].uses) sum += length_[at(use)];
    return sum;
  }

  void forget() {
    phases_ = 0;
    load_.assign(network_.capacities.size(), 0);
    taken_.clear();
  }

  void find_ways(std::int32_t from) {
    std::ranges::fill(distance_, kNoPath);
    std::ranges::fill(by_, -1);
    distance_[at(from)] = 0;
    using Entry = std::pair<double, std::int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    queue.emplace(0, from);
    while (!queue.empty()) {
      const auto [distance, node] = queue.top();
      queue.pop();
      if (distance > distance_[at(node)]) continue;
      for (const std::int32_t arc : leaving_[at(node)]) {
        const std::int32_t to = network_.arcs[at(arc)].to;
        const double then = distance + arc_length(arc);
        if (then >= distance_[at(to)]) continue;
        distance_[at(to)] = then;
        by_[at(to)] = arc;
        queue.emplace(then, to);
      }
    }
  }

  // Scales the demand so that one phase fills the most used capacity about once.
  bool scale_demand() {
    demand_ = 1;
    forget();
    for (std::int32_t from = 0; from < network_.ends; ++from) {
      if (deadline_.over()) return false;
      find_ways(from);
      for (std::int32_t to = 0; to < network_.ends; ++to)
        for (std::int32_t node = to; node != from; node = network_.arcs[at(by_[at(node)])].from)
          for (const std::int32_t use : network_.arcs[at(by_[at(node)])].uses) load_[at(use)] += 1;
    }
    demand_ = 1 / congestion();
    return true;
  }

  double congestion() const {
    double most = 0;
    for (std::size_t c = 0; c < load_.size(); ++c) most = std::max(most, load_[c] / network_.capacities[c]);
    return most;
  }

  // All pairs send once, source by source. The final lengths prove the returned bound.
  double phase(double step) {
    double distances = 0;
    for (std::int32_t from = 0; from < network_.ends; ++from) {
      if (deadline_.over()) return kNoPath;
      find_ways(from);
      std::map<std::int32_t, double> used;
      for (std::int32_t to = 0; to < network_.ends; ++to) {
        if (to == from) continue;
        distances += distance_[at(to)];
        std::vector<std::int32_t> path;
        for (std::int32_t node = to; node != from; node = network_.arcs[at(by_[at(node)])].from)
          path.push_back(by_[at(node)]);
        for (const std::int32_t arc : path)
          for (const std::int32_t use : network_.arcs[at(arc)].uses) used[use] += demand_;
        if (!keeps_) continue;
        std::ranges::reverse(path);
        ++taken_[{from, to}][path];
      }
      for (const auto& [use, amount] : used) {
        load_[at(use)] += amount;
        length_[at(use)] *= 1 + step * amount / network_.capacities[at(use)];
      }
    }
    // Lengths only grow, so the final distances are at least the measured ones.
    double weight = 0;
    for (std::size_t c = 0; c < length_.size(); ++c) weight += length_[c] * network_.capacities[c];
    for (double& length : length_) length /= weight;
    return weight / distances;
  }

  void write_paths(ConcurrentFlow& flow) const {
    for (const auto& [pair, paths] : kept_)
      for (const auto& [path, times] : paths)
        flow.paths.push_back({pair.first, pair.second, path, static_cast<double>(times) / kept_phases_});
  }

  const FlowNetwork& network_;
  const Deadline& deadline_;
  const bool keeps_;
  std::vector<std::vector<std::int32_t>> leaving_;
  std::vector<double> length_, load_;  // per capacity
  std::vector<double> distance_;
  std::vector<std::int32_t> by_;  // the arc that enters each node on a shortest path
  double demand_ = 1;
  std::int32_t phases_ = 0, kept_phases_ = 1;
  using Taken =
      std::map<std::pair<std::int32_t, std::int32_t>, std::map<std::vector<std::int32_t>, std::int32_t>>;
  Taken taken_, kept_;
};

}  // namespace

FlowNetwork flow_network(const Wires& wires) {
  FlowNetwork made{wires.gpus, wires.nodes, {}, {}};
  for (const Wire& wire : wires.wires) {
    made.arcs.push_back({wire.from, wire.to, {static_cast<std::int32_t>(made.capacities.size())}});
    made.capacities.push_back(static_cast<double>(wire.capacity) * wires.unit);
  }
  return made;
}

ConcurrentFlow find_concurrent_flow(const FlowNetwork& network, double gap, const Deadline& deadline,
                                    FlowPaths paths) {
  return Router(network, deadline, paths).run(gap);
}

}  // namespace weft::synthesis
