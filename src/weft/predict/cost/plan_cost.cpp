#include "weft/predict/cost/plan_cost.h"

#include <algorithm>

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"
#include "weft/predict/cost/roofline.h"

namespace weft::cost {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// Read in place, through other strides.
bool moves_nothing(const plan::Operator& op) {
  return op.is_view() || &op == &ops::transpose() || &op == &ops::slice() || &op == &ops::broadcast();
}

// Row loops and matrix products read any strides; operators with their own kernels do not.
bool walks_strides(const plan::Operator& op) {
  return ops::is_pointwise(op) || &op == &ops::cast() || &op == &ops::reduce() || &op == &ops::contract() ||
         &op == &ops::softmax() || &op == &ops::layer_norm() || &op == &ops::rms_norm();
}

bool keeps_order(const NodeView& transpose) {
  const plan::Type from = transpose.input_type(0), to = transpose.result_type(0);
  int last = -1;
  for (const plan::Dim& dim : to.dims) {
    if (dim.size == 1) continue;
    const int place = from.position(dim.index);
    if (place < last) return false;
    last = place;
  }
  return true;
}

bool is_one_run(const NodeView& slice) {
  for (const plan::Dim& dim : slice.result_type(0).dims) {
    if (dim.index == slice.symbol(0)) return true;
    if (dim.size != 1) return false;
  }
  return true;
}

// True if the value is contiguous in the order of its type. A merge of indices that are not
// contiguous is a copy, whose result is contiguous again.
bool lies_in_order(const plan::Graph& graph, ValueId value) {
  while (true) {
    const NodeView node = graph.view(graph.value(value).producer);
    if (!moves_nothing(node.op()) || &node.op() == &ops::merge()) return true;
    if (&node.op() == &ops::transpose() && !keeps_order(node)) return false;
    if (&node.op() == &ops::slice() && !is_one_run(node)) return false;
    if (&node.op() == &ops::broadcast() && node.input_type(0).elements() != node.result_type(0).elements())
      return false;
    value = node.input(0);
  }
}

double copy_seconds(const plan::Type& type, const cluster::Device& device) {
  return device.launch_seconds + 2 * static_cast<double>(type.bytes()) / device.memory_bytes_per_second;
}

}  // namespace

double node_seconds(const NodeView& node, const cluster::Device& device) {
  if (node.input_count() == 0) return 0;
  const bool moves = moves_nothing(node.op());
  double seconds = moves ? 0 : roofline(node, device).seconds;
  if (moves ? &node.op() != &ops::merge() : walks_strides(node.op())) return seconds;
  for (std::size_t i = 0; i < node.input_count(); ++i)
    if (!lies_in_order(node.graph(), node.input(i))) seconds += copy_seconds(node.input_type(i), device);
  return seconds;
}

double plan_flops(const plan::Graph& graph) {
  double flops = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (node.input_count() > 0) flops += node.op().work(node).flops;
  }
  return flops;
}

std::vector<bool> nodes_that_run(const plan::Graph& graph, bool learns) {
  std::vector<bool> runs(graph.node_count(), false), asked(graph.node_count(), false);
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    asked[n] = (learns ? ops::is_source(node.op()) : &node.op() == &ops::input()) ||
               std::ranges::any_of(node.node().inputs,
                                   [&](ValueId input) { return asked[graph.value(input).producer.value]; });
  }
  for (const plan::Output& output : graph.outputs()) runs[graph.value(output.value).producer.value] = true;
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    if (!runs[n]) continue;
    for (const ValueId input : graph.node(NodeId(n)).inputs) runs[graph.value(input).producer.value] = true;
    runs[n] = asked[n];
  }
  return runs;
}

double plan_seconds(const plan::Graph& graph, const cluster::Device& device, bool learns) {
  const std::vector<bool> runs = nodes_that_run(graph, learns);
  double seconds = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (runs[n]) seconds += node_seconds(graph.view(NodeId(n)), device);
  return seconds;
}

}  // namespace weft::cost
