#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "weft/parallel/partition/ideals.h"
#include "weft/parallel/partition/placement.h"

namespace weft::partition {
namespace {

// Fails unless every node is on exactly one device, together with its class, and there are enough
// devices.
Result<std::vector<std::int32_t>> devices_of(const Placement& placement,
                                             const std::vector<PlacementStage>& stages) {
  std::vector<std::int32_t> device(placement.nodes.size(), -1);
  std::int32_t cpus = 0, accelerators = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    ++(stages[stage].cpu ? cpus : accelerators);
    for (const std::int32_t node : stages[stage].nodes) {
      std::int32_t& own = device.at(slot(node));
      if (own >= 0)
        return user_error(
            fmt::format("expected node {} in one stage, found it in two", placement.nodes[slot(node)].id));
      own = static_cast<std::int32_t>(stage);
    }
  }
  if (cpus > placement.cpus || accelerators > placement.accelerators)
    return user_error(fmt::format("expected at most {} accelerators and {} CPUs, found {} and {}",
                                  placement.accelerators, placement.cpus, accelerators, cpus));
  std::vector<std::int32_t> of_class(placement.nodes.size(), -1);
  for (std::size_t i = 0; i < device.size(); ++i) {
    if (device[i] < 0)
      return user_error(fmt::format("expected node {} in a stage, found it in none", placement.nodes[i].id));
    std::int32_t& known = of_class[static_cast<std::size_t>(placement.nodes[i].class_of)];
    if (known >= 0 && known != device[i])
      return user_error(
          fmt::format("expected node {} with its class, found it in another stage", placement.nodes[i].id));
    known = device[i];
  }
  return device;
}

}  // namespace

Result<double> judge(const Placement& placement, const std::vector<PlacementStage>& stages) {
  WEFT_TRY(device, devices_of(placement, stages));
  std::vector<double> load(stages.size()), bytes(stages.size());
  std::vector<std::set<std::int32_t>> touched(stages.size());  // nodes whose output a device transfers
  for (std::size_t i = 0; i < device.size(); ++i) {
    const PlacementNode& node = placement.nodes[i];
    const auto own = static_cast<std::size_t>(device[i]);
    load[own] += stages[own].cpu ? node.on_cpu : node.on_accelerator;
    bytes[own] += node.bytes;
    if (!stages[own].cpu && !node.accelerated)
      return user_error(fmt::format("expected node {} on a CPU, found it on an accelerator", node.id));
  }
  for (const auto& [from, to] : placement.edges) {
    const auto a = static_cast<std::size_t>(device[slot(from)]);
    const auto b = static_cast<std::size_t>(device[slot(to)]);
    if (a == b) continue;
    const PlacementNode& u = placement.nodes[slot(from)];
    const PlacementNode& v = placement.nodes[slot(to)];
    if (!u.backward && !v.backward && a > b)
      return user_error(
          fmt::format("expected forward edges to go forward, found one from node {} to node {}", u.id, v.id));
    touched[a].insert(from);
    touched[b].insert(from);
  }
  double most = 0;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    if (!stages[stage].cpu) {
      if (bytes[stage] > placement.memory * (1 + 1e-12))
        return user_error(fmt::format("expected at most {} bytes in stage {}, found {}", placement.memory,
                                      stage, bytes[stage]));
      for (const std::int32_t node : touched[stage]) load[stage] += placement.nodes[slot(node)].send;
    }
    most = std::max(most, load[stage]);
  }
  return most;
}

}  // namespace weft::partition
