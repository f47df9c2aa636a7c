#include "weft/parallel/distribute/periodic_sums.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "weft/parallel/distribute/local_steps.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

constexpr std::size_t kGradientOperand = 1;  // of every optimizer

bool is_optimizer(const plan::Operator& op) {
  return &op == &ops::sgd() || &op == &ops::momentum() || &op == &ops::adam() || &op == &ops::adamw();
}

class Periods {
 public:
  explicit Periods(const DistributedPlan& plan)
      : plan_(plan), gradients_(gradients_of(plan.graph)), data_(data_axes(plan)) {}

  std::optional<BrokenRequirement> run() const {
    const std::int64_t most = steps_between_sums(plan_.graph);
    if (most == 1) return {};
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n)
      if (auto broken = check(plan_.graph.view(NodeId(n)), most)) return broken;
    return check_outputs();
  }

 private:
  BrokenRequirement broken(const NodeView& node, std::string why) const {
    return {node.id(), fmt::format("node {}: {}", describe(plan_.graph, node.id()), why)};
  }
  bool is_data(std::size_t axis) const { return std::ranges::find(data_, axis) != data_.end(); }

  std::optional<BrokenRequirement> check(const NodeView& node, std::int64_t most) const {
    if (&node.op() == &ops::parameter() || &node.op() == &ops::state()) {
      const plan::Layout& layout = plan_.layouts[node.result(0).value];
      for (const std::size_t axis : data_)
        if (!layout.axes[axis].is_replicated())
          return broken(
              node,
              fmt::format("it is not replicated along {}, but gradients are reduced only every {} steps",
                          plan_.mesh.axes[axis].name, most));
      return {};
    }
    const ops::Communication* const op = ops::find_communication(node.op());
    if (op == nullptr) return {};
    const std::int64_t every = ops::steps_between_sums(node);
    const auto axis = static_cast<std::size_t>(plan_.mesh.find(op->axis(node)));
    const ops::Exchange exchange = op->exchange(node);
    const bool sums = exchange.take == ops::Exchange::Take::combined && exchange.monoid == plan::Monoid::sum;
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const bool is_gradient = gradients_[node.result(k).value];
      if (every > 1 && !is_gradient)
        return broken(node, fmt::format("every={} is for gradients that optimizers read, but %{} is not one",
                                        every, node.result(k).value));
      if (every > 1 && !is_data(axis))
        return broken(node, fmt::format("every={} is for an axis that slices the batch, and {} does not",
                                        every, plan_.mesh.axes[axis].name));
      if (sums && is_gradient && is_data(axis) && every != most)
        return broken(
            node, fmt::format("it reduces a gradient every {} steps, but other reductions run every {} steps",
                              every, most));
    }
    return {};
  }

  // Whether it persists from step to step.
  bool is_held(ValueId value) const {
    const plan::Operator* const op = &plan_.graph.view(plan_.graph.value(value).producer).op();
    return op == &ops::parameter() || op == &ops::state();
  }

  // Values that depend on such a sum may only affect the next step. Each rank may clip by its own
  // gradients, but all ranks must agree on whether to skip a step.
  std::optional<BrokenRequirement> check_outputs() const {
    std::vector<bool> unsummed(plan_.graph.value_count());
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(NodeId(n));
      const bool follows =
          ops::steps_between_sums(node) > 1 ||
          std::ranges::any_of(node.node().inputs, [&](ValueId input) { return unsummed[input.value]; });
      for (std::size_t k = 0; k < node.result_count(); ++k) unsummed[node.result(k).value] = follows;
      if (&node.op() == &ops::select() && unsummed[node.input(0).value] &&
          (is_held(node.input(1)) || is_held(node.input(2))))
        return broken(node, "it skips a step based on a gradient that is not summed, so ranks may differ");
    }
    for (const plan::Output& output : plan_.graph.outputs())
      if (unsummed[output.value.value] && !output.updates.valid())
        return BrokenRequirement{
            plan_.graph.value(output.value).producer,
            fmt::format("output {} depends on a gradient that is not summed", plan_.graph.text(output.name))};
    return {};
  }

  const DistributedPlan& plan_;
  const std::vector<bool> gradients_;    // by value
  const std::vector<std::size_t> data_;  // axes of the mesh
};

}  // namespace

std::vector<bool> gradients_of(const plan::Graph& graph) {
  std::vector<bool> found(graph.value_count());
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    const NodeView node = graph.view(NodeId(n));
    const plan::Operator* const op = &node.op();
    if (is_optimizer(*op)) found[node.input(kGradientOperand).value] = true;
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      if (!found[node.result(k).value]) continue;
      const bool moves = op->is_view() || op == &ops::cast() || op == &ops::transpose() ||
                         op == &ops::slice() || op == &ops::concat();
      if (ops::find_communication(*op) != nullptr) {
        found[node.input(k).value] = true;
      } else if (moves) {
        for (const ValueId input : node.node().inputs) found[input.value] = true;
      } else if (op == &ops::select()) {
        found[node.input(1).value] = found[node.input(2).value] = true;
      } else if (op == &ops::add() || op == &ops::sub() || op == &ops::mul() || op == &ops::div()) {
        // The gradient in a product is the operand with the result's indices; of two scalars, the
        // first.
        const bool adds = op == &ops::add() || op == &ops::sub();
        for (const ValueId input : node.node().inputs) {
          if (!std::ranges::equal(graph.type(input).dims, node.result_type(0).dims)) continue;
          found[input.value] = true;
          if (!adds) break;
        }
      }
    }
  }
  return found;
}

std::optional<BrokenRequirement> find_misplaced_period(const DistributedPlan& plan) {
  return Periods(plan).run();
}

}  // namespace weft::distribute
