#include "weft/parallel/partition/hybrid_stages.h"

#include <algorithm>
#include <limits>
#include <set>

namespace weft::partition {
namespace {

constexpr std::int32_t kMostChoiceSteps = 400;

}  // namespace

HybridStages::HybridStages(const Hybrid& hybrid, const Ideals& ideals)
    : hybrid_(hybrid),
      ideals_(ideals),
      incoming_(hybrid.nodes.size()),
      outgoing_(hybrid.nodes.size()),
      parts_(slot(ideals.count())) {
  for (std::size_t i = 0; i < hybrid.edges.size(); ++i) {
    incoming_[slot(hybrid.edges[i].to)].push_back(static_cast<std::int32_t>(i));
    outgoing_[slot(hybrid.edges[i].from)].push_back(static_cast<std::int32_t>(i));
  }
  for (std::int32_t d = 1; d <= std::min(hybrid.devices, hybrid.micro_batches); ++d)
    if (hybrid.micro_batches % d == 0) replicas_.push_back(d);
  std::set<std::int32_t> degrees;
  for (const HybridNode& node : hybrid.nodes) {
    double least = std::numeric_limits<double>::infinity();
    for (const HybridNode::Degree& degree : node.degrees) {
      if (degree.devices > hybrid.devices) continue;
      degrees.insert(degree.devices);
      for (const Way& way : degree.ways) least = std::min(least, way.seconds * degree.devices);
    }
    least_work_.push_back(least);
  }
  std::uint32_t number = 0;
  for (std::int32_t outer = 1; outer < ideals.count(); ++outer)
    for (std::int32_t inner = 0; inner < outer; ++inner) {
      if (!ideals.within(inner, outer)) continue;
      const std::vector<std::int32_t> nodes = ideals.between(inner, outer);
      for (const std::int32_t degree : degrees) {
        Part part{inner, degree, number, 0, 0, 0, 0};
        bool all = true;
        for (const std::int32_t node : nodes) {
          const std::vector<Way>* ways = ways_of(node, degree);
          if (ways == nullptr) {
            all = false;
            break;
          }
          constexpr double kMost = std::numeric_limits<double>::infinity();
          double seconds = kMost, parameters = kMost, held = kMost, kept = kMost;
          for (const Way& way : *ways) {
            seconds = std::min(seconds, own_seconds(node, way, inner, outer));
            parameters = std::min(parameters, way.parameters);
            held = std::min(held, way.held);
            kept = std::min(kept, way.kept);
          }
          part.seconds += seconds;
          part.parameters += parameters;
          part.held += held;
          part.kept += kept;
        }
        if (!all || part.kept + part.held > hybrid.memory) continue;
        parts_[slot(outer)].push_back(part);
        ++number;
      }
    }
}

const std::vector<Way>* HybridStages::ways_of(std::int32_t node, std::int32_t degree) const {
  for (const HybridNode::Degree& own : hybrid_.nodes[slot(node)].degrees)
    if (own.devices == degree && !own.ways.empty()) return &own.ways;
  return nullptr;
}

double HybridStages::own_seconds(std::int32_t node, const Way& way, std::int32_t inner,
                                 std::int32_t outer) const {
  double bytes = 0;
  for (std::size_t i = 0; i < incoming_[slot(node)].size(); ++i) {
    const Hybrid::Edge& edge = hybrid_.edges[slot(incoming_[slot(node)][i])];
    if (ideals_.has(inner, edge.from)) bytes += edge.bytes + way.from[i];
  }
  for (std::size_t i = 0; i < outgoing_[slot(node)].size(); ++i) {
    const Hybrid::Edge& edge = hybrid_.edges[slot(outgoing_[slot(node)][i])];
    if (!ideals_.has(outer, edge.to)) bytes += edge.bytes + way.to[i];
  }
  return way.seconds + 2 * bytes / hybrid_.bandwidth;
}

const Items& HybridStages::items(const Part& part, std::int32_t outer, std::int32_t replicas,
                                 std::int32_t in_flight) {
  if (last_part_ != part.number) {
    last_part_ = part.number;
    last_ways_.clear();
    for (const std::int32_t node : ideals_.between(part.inner, outer)) {
      std::vector<OwnWay>& own = last_ways_.emplace_back();
      for (const Way& way : *ways_of(node, part.degree))
        own.push_back({own_seconds(node, way, part.inner, outer), way.parameters, way.held, way.kept});
    }
  }
  items_.resize(last_ways_.size());
  for (std::size_t i = 0; i < items_.size(); ++i) {
    items_[i].clear();
    for (const OwnWay& way : last_ways_[i])
      items_[i].push_back(
          {way.seconds / replicas + resync(way.parameters, replicas), way.held * in_flight + way.kept});
  }
  return items_;
}

bool HybridStages::within_limit(const Part& part, std::int32_t outer, std::int32_t replicas,
                                std::int32_t in_flight, double limit) {
  if (part.held * in_flight + part.kept > hybrid_.memory) return false;
  // Replicas and micro-batches in flight are below 2^16.
  const std::uint64_t key = (std::uint64_t{part.number} << 32) |
                            (static_cast<std::uint64_t>(replicas) << 16) |
                            static_cast<std::uint64_t>(in_flight);
  auto known = known_.find(key);
  if (known == known_.end()) {
    const Choices choices = choose(items(part, outer, replicas, in_flight), hybrid_.memory);
    known = known_.emplace(key, Known{choices.cost, choices.bound}).first;
  }
  if (known->second.cost <= limit) return true;
  if (known->second.bound > limit) return false;
  // Between the two bounds, the greedy choice is not conclusive.
  const Items& exact = items(part, outer, replicas, in_flight);
  const Choices choices =
      choose_exactly(exact, hybrid_.memory, choose(exact, hybrid_.memory), kMostChoiceSteps);
  exact_ = exact_ && choices.bound >= choices.cost;
  known->second = {choices.cost, choices.cost};
  return choices.cost <= limit;
}

std::int32_t HybridStages::most_in_flight(const Part& part, std::int32_t outer, std::int32_t replicas,
                                          double limit, std::int32_t most) {
  if (part.seconds / replicas + resync(part.parameters, replicas) > limit) return 0;
  Bracket& known = brackets_[(std::uint64_t{part.number} << 32) | static_cast<std::uint64_t>(replicas)];
  std::int32_t low = limit >= known.low_limit ? known.low : 0;
  std::int32_t high = std::min(most, limit <= known.high_limit ? known.high : most);
  if (part.held > 0)
    high = static_cast<std::int32_t>(std::min<double>(high, (hybrid_.memory - part.kept) / part.held + 1));
  // More in flight takes more memory and never less time. Often `most` is feasible, so it is tried
  // first.
  for (bool first = true; low < high; first = false) {
    const std::int32_t middle = first ? high : low + (high - low + 1) / 2;
    if (within_limit(part, outer, replicas, middle, limit))
      low = middle;
    else
      high = middle - 1;
  }
  if (limit >= known.low_limit && low >= known.low) known.low_limit = limit, known.low = low;
  if (limit <= known.high_limit) known.high_limit = limit, known.high = low;
  return low;
}

Choices HybridStages::ways(const Part& part, std::int32_t outer, std::int32_t replicas,
                           std::int32_t in_flight, double limit) {
  const Items& own = items(part, outer, replicas, in_flight);
  const Choices choices = choose(own, hybrid_.memory);
  return choices.cost <= limit ? choices : choose_exactly(own, hybrid_.memory, choices, kMostChoiceSteps);
}

}  // namespace weft::partition
