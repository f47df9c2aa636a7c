#include <algorithm>

#include <fmt/format.h>

#include "weft/parallel/partition/hybrid.h"

namespace weft::partition {
namespace {

// Fails unless every node is in exactly one stage, edges go forward, and there are enough devices
// and micro-batches.
Result<std::vector<std::int32_t>> stages_of(const Hybrid& hybrid, const std::vector<HybridStage>& stages) {
  std::vector<std::int32_t> stage_of(hybrid.nodes.size(), -1);
  std::int64_t devices = 0, replicas = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const HybridStage& stage = stages[i];
    if (stage.replicas < 1 || hybrid.micro_batches % stage.replicas != 0)
      return user_error(
          fmt::format("expected replicas that divide {}, found {}", hybrid.micro_batches, stage.replicas));
    if (stage.ways.size() != stage.nodes.size())
      return user_error(fmt::format("expected a strategy for each of {} nodes, found {}", stage.nodes.size(),
                                    stage.ways.size()));
    devices += std::int64_t{stage.replicas} * stage.degree;
    replicas += stage.replicas;
    for (const std::int32_t node : stage.nodes) {
      if (stage_of.at(slot(node)) >= 0)
        return user_error(
            fmt::format("expected node {} in one stage, found it in two", hybrid.nodes[slot(node)].id));
      stage_of[slot(node)] = static_cast<std::int32_t>(i);
    }
  }
  if (devices > hybrid.devices || replicas > hybrid.micro_batches)
    return user_error(fmt::format("expected at most {} devices and {} replicas, found {} and {}",
                                  hybrid.devices, hybrid.micro_batches, devices, replicas));
  if (const auto none = std::ranges::find(stage_of, -1); none != stage_of.end())
    return user_error(fmt::format("expected node {} in a stage, found it in none",
                                  hybrid.nodes[static_cast<std::size_t>(none - stage_of.begin())].id));
  for (const Hybrid::Edge& edge : hybrid.edges)
    if (stage_of[slot(edge.from)] > stage_of[slot(edge.to)])
      return user_error(fmt::format("expected edges to go forward, found one from node {} to node {}",
                                    hybrid.nodes[slot(edge.from)].id, hybrid.nodes[slot(edge.to)].id));
  return stage_of;
}

}  // namespace

Result<double> judge(const Hybrid& hybrid, const std::vector<HybridStage>& stages) {
  WEFT_TRY(stage_of, stages_of(hybrid, stages));
  double slowest = 0;
  std::int32_t after = 0;  // replicas of this stage and all later ones
  for (std::size_t i = stages.size(); i-- > 0;) {
    const HybridStage& stage = stages[i];
    const double d = stage.replicas;
    after += stage.replicas;
    const std::int32_t in_flight = (after + stage.replicas - 1) / stage.replicas;
    double seconds = 0, bytes = 0, parameters = 0, memory = 0;
    for (std::size_t n = 0; n < stage.nodes.size(); ++n) {
      const std::int32_t node = stage.nodes[n];
      const auto& degrees = hybrid.nodes[slot(node)].degrees;
      const auto degree = std::ranges::find(degrees, stage.degree, &HybridNode::Degree::devices);
      if (degree == degrees.end() || slot(stage.ways[n]) >= degree->ways.size())
        return user_error(fmt::format("expected a strategy for node {} on {} devices, found none",
                                      hybrid.nodes[slot(node)].id, stage.degree));
      const Way& way = degree->ways[slot(stage.ways[n])];
      seconds += way.seconds;
      parameters += way.parameters;
      memory += way.held * in_flight + way.kept;
      std::size_t from = 0, to = 0;  // position among the node's edges
      for (const Hybrid::Edge& edge : hybrid.edges) {
        if (edge.to == node && stage_of[slot(edge.from)] != stage_of[slot(node)])
          bytes += edge.bytes + way.from[from];
        if (edge.from == node && stage_of[slot(edge.to)] != stage_of[slot(node)])
          bytes += edge.bytes + way.to[to];
        if (edge.to == node) ++from;
        if (edge.from == node) ++to;
      }
    }
    if (memory > hybrid.memory * (1 + 1e-12))
      return user_error(
          fmt::format("expected at most {} bytes in stage {}, found {}", hybrid.memory, i, memory));
    slowest = std::max(slowest, seconds / d + 2 * bytes / d / hybrid.bandwidth +
                                    4 * (d - 1) / d * parameters / hybrid.micro_batches / hybrid.bandwidth);
  }
  return slowest;
}

}  // namespace weft::partition
