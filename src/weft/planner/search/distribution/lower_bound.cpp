#include "weft/planner/search/distribution/lower_bound.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/roofline.h"

namespace weft::search {
namespace {

using plan::Graph;
using plan::NodeId;
using plan::NodeView;

double node_seconds_at_peak(const NodeView& node, const cluster::Device& device) {
  if (node.input_count() == 0) return 0;
  // Products of 8-bit operands have bf16 results, but run at the rate of their operands.
  const plan::DType read = node.input_type(0).dtype;
  const double rate = cost::peak_rate(device, plan::is_f8(read) ? read : node.result_type(0).dtype);
  return rate > 0 ? node.op().work(node).flops / rate : 0;
}

// Seconds on one device, for all nodes or for those that a value depends on.
double arithmetic(const Graph& graph, const cluster::Device& device, const std::vector<bool>* of = nullptr) {
  double seconds = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (of == nullptr || (*of)[n]) seconds += node_seconds_at_peak(graph.view(NodeId(n)), device);
  return seconds;
}

// Whether results may depend on only some elements of the operands.
bool leaves_out(const NodeView& node) {
  const std::string_view name = node.op().name();
  if (name.find("gather") != name.npos || name.find("top-k") != name.npos || name.find("conv") != name.npos ||
      name.find("pool") != name.npos)
    return true;
  return &node.op() == &ops::slice();
}

// The nodes of which a scalar depends on all elements.
std::vector<bool> needed_for(const Graph& graph, plan::ValueId number) {
  std::vector<bool> needed(graph.node_count());
  needed[graph.value(number).producer.value] = true;
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    if (!needed[n] || leaves_out(graph.view(NodeId(n)))) continue;
    for (const plan::ValueId input : graph.node(NodeId(n)).inputs)
      needed[graph.value(input).producer.value] = true;
  }
  return needed;
}

double moved_by_updates(const Graph& graph) {
  std::vector<bool> counted(graph.node_count());
  double bytes = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (node.phase() != plan::Phase::update) continue;
    for (const plan::ValueId input : node.node().inputs) {
      const NodeId source = graph.value(input).producer;
      const plan::Operator* op = graph.node(source).op;
      if (counted[source.value] || (op != &ops::parameter() && op != &ops::state())) continue;
      counted[source.value] = true;
      bytes += 2 * static_cast<double>(graph.type(input).bytes());
    }
  }
  return bytes;
}

// Seconds on one device for the scalar output that depends on the most work. Other outputs may be
// computed in slices, each from part of the inputs.
double largest_cone(const Graph& graph, const cluster::Device& device) {
  constexpr int kMost = 4;
  double seconds = 0;
  int looked = 0;
  for (const plan::Output& output : graph.outputs()) {
    if (graph.type(output.value).rank() > 0 || ++looked > kMost) continue;
    const std::vector<bool> needed = needed_for(graph, output.value);
    seconds = std::max(seconds, arithmetic(graph, device, &needed));
  }
  return seconds;
}

// Work is divided in proportion to the speed of each kind of device.
LowerBound bound_of_kinds(const Graph& graph, const cluster::Cluster& cluster) {
  double steps_a_second = 0;
  for (const cluster::DeviceKind& kind : cluster.kinds)
    if (const double alone = arithmetic(graph, kind.device); alone > 0)
      steps_a_second += static_cast<double>(kind.nodes * cluster.axes.back().size) / alone;
  return {steps_a_second > 0 ? 1 / steps_a_second : 0,
          fmt::format("its arithmetic at the peak rates of {}", cluster::print_devices(cluster))};
}

}  // namespace

LowerBound lower_bound(const Graph& graph, const cluster::Cluster& cluster, int devices_per_rank) {
  if (cluster.is_mixed()) return bound_of_kinds(graph, cluster);
  const auto devices = static_cast<double>(cluster.devices() * devices_per_rank);
  const std::string them = fmt::format("{} {}", cluster.devices() * devices_per_rank, cluster.device.name);
  LowerBound bound{arithmetic(graph, cluster.device) / devices,
                   fmt::format("its arithmetic at the peak rate of {}", them)};
  if (cost::is_local(cluster)) return bound;
  const auto raise = [&](double seconds, std::string why) {
    if (seconds > bound.seconds) bound = {seconds, std::move(why)};
  };
  if (cluster.device.memory_bytes_per_second > 0)
    raise(
        moved_by_updates(graph) / devices / cluster.device.memory_bytes_per_second,
        fmt::format("parameters and optimizer states read and written at the memory bandwidth of {}", them));
  const double cone = largest_cone(graph, cluster.device);
  double quickest = std::numeric_limits<double>::infinity();  // latency of the links that leave a unit
  double inside = devices;
  for (const cluster::Axis& axis : cluster.axes) {
    if (axis.size <= 1) continue;
    inside /= static_cast<double>(axis.size);
    quickest = std::min(quickest, axis.link.latency_seconds);
    raise(std::min(cone / inside, quickest),
          cone / inside <= quickest
              ? fmt::format("the arithmetic of one {} alone, which is faster than one message out of it",
                            inside > 1 ? "unit of " + axis.name : cluster.device.name)
              : fmt::format("one message, without which a single {} would compute everything",
                            inside > 1 ? "unit of " + axis.name : cluster.device.name));
  }
  return bound;
}

}  // namespace weft::search
