#include "weft/planner/search/sync/delay_gradients.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/parallel/distribute/edit_plan.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/search/bucket/gradient_sums.h"

namespace weft::search {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// Axes along which ranks hold partial sums.
std::vector<std::size_t> addend_axes(const distribute::DistributedPlan& plan, ValueId x) {
  std::vector<std::size_t> found;
  const plan::Layout& layout = plan.layouts[x.value];
  for (std::size_t axis = 0; axis < layout.axes.size(); ++axis)
    if (layout.axes[axis].is_partial()) found.push_back(axis);
  return found;
}

bool sums_addends(const distribute::DistributedPlan& plan, const std::vector<bool>& is_gradient,
                  const NodeView& node) {
  return is_gradient[node.id().value] && node.input_count() == 1 && !addend_axes(plan, node.input(0)).empty();
}

// States are f32, like the optimizer's, except for f64 gradients.
plan::DType kept_in(plan::DType gradient) {
  return gradient == plan::DType::f64 ? plan::DType::f64 : plan::DType::f32;
}

class GradientDelay {
 public:
  GradientDelay(const distribute::DistributedPlan& plan, DelayedSums stand)
      : plan_(plan),
        stand_(stand),
        edit_(plan),
        is_gradient_(gradient_sums(plan.graph)),
        names_(gradient_names(plan.graph)),
        is_early_(plan.graph.node_count()) {}

  Result<DelayedGradients> run() {
    const std::size_t from = stand_ == DelayedSums::after_forward ? forward_nodes() : 0;
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      if (n == from) WEFT_TRY_STATUS(sum_early());
      if (!is_early_[n]) WEFT_TRY_STATUS(edit_.keep(NodeId(n)));
    }
    for (Kept& kept : kept_) WEFT_TRY_STATUS(keep_addends(kept));
    DelayedGradients made;
    WEFT_TRY(plan, edit_.finish());
    made.plan = std::move(plan);
    plan::Graph& graph = made.plan.graph;
    for (const Kept& kept : kept_) {
      graph.add_update(kept.name, kept.next);
      std::int64_t elements = 1;
      for (const plan::Share& share :
           plan::shares_of(graph.type(kept.next), made.plan.layouts[kept.next.value], made.plan.mesh, 0))
        elements *= share.size;
      made.bytes += elements * plan::size_in_bytes(graph.type(kept.next).dtype);
    }
    made.gradients = static_cast<std::int64_t>(kept_.size());
    return made;
  }

 private:
  struct Kept {
    NodeId sum;  // the first sum of this gradient
    std::string name = {};
    std::vector<std::size_t> axes;  // along which ranks hold partial sums
    std::vector<Symbol> rows = {};  // one per axis, in the new plan
    ValueId next = {};
  };

  std::size_t forward_nodes() const {
    std::size_t n = 0;
    while (n < plan_.graph.node_count() && plan_.graph.phase(NodeId(n)) == plan::Phase::forward) ++n;
    return n;
  }

  // Adds the sums, then casts and further sums, none of which depends on this step. Small ones come
  // first, so that updates that could start early, such as those of biases, do not wait for large
  // sums.
  Status sum_early() {
    std::vector<NodeId> sums, after;
    std::vector<bool> is_summed(plan_.graph.value_count());
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(NodeId(n));
      if (node.input_count() != 1) continue;
      const ValueId x = node.input(0);
      const bool hands_on = node.phase() != plan::Phase::forward &&
                            (ops::find_communication(node.op()) != nullptr || &node.op() == &ops::cast());
      if (is_summed[x.value] && hands_on)
        after.push_back(node.id());
      else if (sums_addends(plan_, is_gradient_, node))
        sums.push_back(node.id());
      else
        continue;
      is_early_[n] = is_summed[node.result(0).value] = true;
    }
    std::ranges::stable_sort(
        sums, {}, [&](NodeId sum) { return plan_.graph.type(plan_.graph.node(sum).inputs[0]).bytes(); });
    for (const NodeId sum : sums) WEFT_TRY_STATUS(sum_what_was_made(plan_.graph.view(sum)));
    for (const NodeId next : after) {
      const NodeView node = plan_.graph.view(next);
      edit_.adopt_context(next);
      WEFT_TRY(again, add_sum(node, edit_.now(node.input(0))));
      edit_.become(node.result(0), again);
    }
    return {};
  }

  // The last attribute of an all-reduce is its priority.
  Result<ValueId> add_sum(const NodeView& node, ValueId x) {
    const bool is_low = stand_ == DelayedSums::first_at_low_priority && &node.op() == &ops::all_reduce();
    const plan::AttributeValue low = edit_.graph().symbol(ops::kLowPriority);
    WEFT_TRY(sum, edit_.add_again(node.id(), {&x, 1}, is_low ? &low : nullptr));
    return edit_.graph().result(sum);
  }

  Symbol fresh(const plan::Type& type, std::string name) {
    while (std::ranges::any_of(type.dims,
                               [&](const plan::Dim& dim) { return plan_.graph.text(dim.index) == name; }))
      name += '_';
    return edit_.graph().symbol(name);
  }

  Status sum_what_was_made(const NodeView& node) {
    plan::Graph& graph = edit_.graph();
    const ValueId x = node.input(0);
    const plan::Type type = plan_.graph.type(x);
    Kept kept{.sum = node.id(), .axes = addend_axes(plan_, x)};
    const std::string& parameter = names_[x.value];
    kept.name = fmt::format("{}.delayed.{}", parameter.empty() ? "gradient" : parameter, node.word(0));
    while (!taken_.insert(kept.name).second || distribute::sources_of(plan_.graph).contains(kept.name))
      kept.name += "_";
    plan::Layout layout = plan_.layouts[x.value];
    ops::DimList dims, of_gradient;
    for (const plan::Dim& dim : type.dims) of_gradient.push_back({edit_.symbol(dim.index), dim.size});
    for (plan::AxisLayout& along : layout.axes)
      if (along.is_sliced()) along.index = edit_.symbol(along.index);
    for (const std::size_t axis : kept.axes) {
      const plan::MeshAxis& along = plan_.mesh.axes[axis];
      kept.rows.push_back(fresh(type, along.name + "_addend"));
      layout.axes[axis] = plan::AxisLayout::sliced(kept.rows.back());
    }
    // Each is stacked in front of the previous ones.
    for (std::size_t i = kept.rows.size(); i-- > 0;)
      dims.push_back({kept.rows[i], plan_.mesh.axes[kept.axes[i]].ranks});
    for (const plan::Dim& dim : of_gradient) dims.push_back(dim);
    WEFT_TRY(state_type, graph.intern_type(kept_in(type.dtype), dims));
    graph.set_label({});
    graph.set_scope({});
    graph.set_when({});
    const std::array<plan::AttributeValue, 6> attributes = {
        graph.symbol(kept.name), state_type,       std::monostate(),
        std::monostate(),        std::monostate(), graph.symbol(print(layout, plan_.mesh, graph.symbols()))};
    WEFT_TRY(state, graph.add_value(ops::state(), {}, attributes));
    edit_.adopt_context(node.id());
    WEFT_TRY(before, ops::add_reduce(graph, "sum", state, ops::indices_of(of_gradient)));
    WEFT_TRY(as_it_was, ops::add_cast(graph, before, type.dtype));
    WEFT_TRY(sum, add_sum(node, as_it_was));
    edit_.become(node.result(0), sum);
    kept_.push_back(std::move(kept));
    return {};
  }

  Status keep_addends(Kept& kept) {
    plan::Graph& graph = edit_.graph();
    edit_.adopt_context(kept.sum);
    const plan::ValueId addend = plan_.graph.node(kept.sum).inputs[0];
    WEFT_TRY(x, ops::add_cast(graph, edit_.now(addend), kept_in(plan_.graph.type(addend).dtype)));
    for (std::size_t i = 0; i < kept.rows.size(); ++i) {
      const plan::MeshAxis& along = plan_.mesh.axes[kept.axes[i]];
      const std::array<plan::AttributeValue, 3> attributes = {graph.symbol(along.name), kept.rows[i],
                                                              std::int64_t{along.ranks}};
      WEFT_TRY(stacked, graph.add_value(ops::addends(), {&x, 1}, attributes));
      x = stacked;
    }
    kept.next = x;
    return {};
  }

  const distribute::DistributedPlan& plan_;
  const DelayedSums stand_;
  distribute::PlanEdit edit_;
  const std::vector<bool> is_gradient_;   // by node
  const std::vector<std::string> names_;  // of parameters, by gradient
  std::vector<bool> is_early_;            // by node: moved to the start
  std::vector<Kept> kept_;
  std::set<std::string> taken_;
};

}  // namespace

Status check_delayable(const distribute::DistributedPlan& plan) {
  const std::vector<bool> is_gradient = gradient_sums(plan.graph);
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n)
    if (sums_addends(plan, is_gradient, plan.graph.view(NodeId(n)))) return {};
  return user_error("gradient_delay: this plan reduces no gradients across ranks",
                    "gradient_delay = 0, or a distribution that slices the batch");
}

Result<DelayedGradients> delay_gradients(const distribute::DistributedPlan& plan, DelayedSums stand) {
  WEFT_TRY_STATUS(check_delayable(plan));
  return GradientDelay(plan, stand).run();
}

}  // namespace weft::search
