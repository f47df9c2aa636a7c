#include "weft/parallel/pipeline/roles.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::pipeline {

using plan::Graph;
using plan::NodeId;
using plan::NodeView;
using plan::Phase;
using plan::ValueId;

namespace {

// Work for a parameter gradient may run any time later, unless an earlier stage waits for its
// result.
void promote_to_backward(const Graph& graph, const std::vector<std::int32_t>& position, Roles& roles) {
  std::vector<bool> goes_on(graph.value_count());
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    if (roles.role[n] != Role::micro || roles.pass[n] == train::Pass::forward) continue;
    const NodeView node = graph.view(NodeId(n));
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (goes_on[node.result(k).value]) roles.pass[n] = train::Pass::backward;
    for (const ValueId input : node.node().inputs) {
      const std::size_t maker = graph.value(input).producer.value;
      if (roles.pass[n] == train::Pass::backward || position[maker] != position[n])
        goes_on[input.value] = true;
    }
  }
}

}  // namespace

Result<Roles> roles_of(const distribute::DistributedPlan& plan) {
  const Graph& graph = plan.graph;
  const int axis = plan.mesh.find(kMicroAxis);
  const bool several = axis >= 0 && plan.mesh.axes[static_cast<std::size_t>(axis)].ranks > 1;
  // With unequal numbers per rank, a rank's micro-batches lie among the rows of others. So any
  // value sliced along the batch differs per micro-batch, whichever axis slices it.
  const auto unequal = several && plan.time ? unequal_axis(plan.time->distribution) : std::nullopt;
  Symbol batch;
  if (unequal) {
    WEFT_TRY(index, batch_index(graph));
    batch = index;
  }
  Roles roles;
  roles.pass = train::passes_of(graph);
  roles.sums.resize(graph.node_count());
  roles.each.resize(graph.node_count());
  std::vector<bool> fed(graph.node_count()), learned(graph.node_count());  // depends on inputs, on parameters
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    const ops::Communication* const moves = ops::find_communication(node.op());
    const bool is_source = ops::is_source(node.op()), is_input = &node.op() == &ops::input();
    fed[n] = is_input;
    learned[n] = is_source && !is_input;
    bool after_sums = false, once = true;  // all its operands are the same for all micro-batches
    for (const ValueId input : node.node().inputs) {
      const std::size_t maker = graph.value(input).producer.value;
      fed[n] = fed[n] || fed[maker];
      learned[n] = learned[n] || learned[maker];
      after_sums = after_sums || roles.role[maker] == Role::total;
      once = once && roles.role[maker] != Role::micro && !roles.each[maker];
    }
    for (std::size_t k = 0; several && k < node.result_count(); ++k)
      if (!plan.layouts[node.result(k).value].axes[static_cast<std::size_t>(axis)].is_replicated())
        roles.each[n] = true;
    for (std::size_t k = 0; unequal && k < node.result_count(); ++k)
      if (plan.layouts[node.result(k).value].axes[*unequal].slices(batch)) roles.each[n] = true;
    if (roles.each[n] && is_source && !is_input)
      return user_error(fmt::format("{} {} spans the whole batch, which is split into micro-batches",
                                    node.op().name(), node.word(0)),
                        "micro_batches = 1");
    const bool along = several && moves != nullptr && moves->axis(node) == kMicroAxis;
    if (along && node.input_count() > 1)
      return user_error(
          fmt::format("{} sums {} values over micro-batches at once, but they are summed one at a time",
                      describe(graph, node.id()), node.input_count()),
          "use one all-reduce for each of them");
    if (along && moves->exchange(node).take != ops::Exchange::Take::own) {
      if (moves->exchange(node).take != ops::Exchange::Take::combined || moves->exchange(node).keep.valid() ||
          moves->exchange(node).monoid != plan::Monoid::sum)
        return user_error(fmt::format("{} needs the whole batch at once: {} over its micro-batches",
                                      describe(graph, node.id()), node.op().name()),
                          "use micro_batches = 1, or a model whose examples are independent");
      roles.sums[n] = true;
      after_sums = roles.role[graph.value(node.input(0)).producer.value] != Role::free;
    }
    const bool both = fed[n] && learned[n];
    if (both && node.phase() == Phase::update && (!several || once)) after_sums = true;
    const Role role = after_sums ? Role::total : both ? Role::micro : Role::free;
    roles.role.push_back(role);
    if (role == Role::micro && roles.pass[n] == train::Pass::update) roles.pass[n] = train::Pass::weight;
    if (role == Role::total && roles.each[n])
      return user_error(
          fmt::format("{} needs the whole batch before a micro-batch can go on", describe(graph, node.id())),
          "use a loss that is a mean or a sum over examples");
  }
  if (plan.time && !plan.time->position.empty()) promote_to_backward(graph, plan.time->position, roles);
  return roles;
}

void settle_positions(const Graph& graph, const Roles& roles, std::vector<std::int32_t>& position) {
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    std::int32_t& here = position[n];
    if (roles.role[n] == Role::free || ops::is_source(*graph.node(NodeId(n)).op)) {
      here = -1;
      continue;
    }
    const bool forward = roles.pass[n] == train::Pass::forward;
    std::int32_t least = -1, most = -1;  // over operands with the same direction of flow
    for (const ValueId input : graph.node(NodeId(n)).inputs) {
      const std::size_t maker = graph.value(input).producer.value;
      if (position[maker] < 0 || (!forward && roles.pass[maker] == train::Pass::forward)) continue;
      least = least < 0 ? position[maker] : std::min(least, position[maker]);
      most = std::max(most, position[maker]);
    }
    if (roles.role[n] == Role::total) {
      if (here < 0) here = std::max(most, 0);
    } else if (forward) {
      here = std::max({here, most, 0});
    } else if (least >= 0) {
      here = here < 0 ? least : std::min(here, least);
    } else if (here < 0) {
      for (const ValueId input : graph.node(NodeId(n)).inputs)
        here = std::max(here, position[graph.value(input).producer.value]);
      here = std::max(here, 0);
    }
  }
}

Stages stages_at(const Schedule& schedule, std::int32_t position) {
  Stages stages = 0;
  for (std::int32_t k = 0; k < schedule.micro_batches; ++k) stages |= only(schedule.stage_at(position, k));
  return stages;
}

std::vector<Stages> stages_that_need(const distribute::DistributedPlan& plan, const Roles& roles,
                                     const Schedule& schedule) {
  const Graph& graph = plan.graph;
  std::vector<Stages> need(graph.value_count());
  const Stages all = schedule.stages == kMostStages ? ~Stages{0} : only(schedule.stages) - 1;
  std::map<std::string_view, ValueId> sources;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (const NodeView node = graph.view(NodeId(n)); ops::is_source(node.op()))
      sources.emplace(node.word(0), node.result(0));
  const auto made_at = [&](NodeId maker) {
    const std::int32_t position = std::max(plan.time->position[maker.value], 0);  // a source is anywhere
    return roles.role[maker.value] == Role::total ? only(owner_at(schedule, position))
                                                  : stages_at(schedule, position);
  };
  // The next value of a source is needed where the source is held, which in turn may depend on
  // other sources.
  for (bool changed = true; changed;) {
    changed = false;
    const auto add = [&](ValueId value, Stages stages) {
      if ((need[value.value] | stages) == need[value.value]) return;
      need[value.value] |= stages;
      changed = true;
    };
    for (const plan::Output& output : graph.outputs()) {
      const NodeId maker = graph.value(output.value).producer;
      if (!output.updates.valid()) {
        if (graph.type(output.value).rank() == 0) add(output.value, all);
        continue;
      }
      const auto source = sources.find(graph.text(output.updates));
      if (source == sources.end()) continue;
      // An unread source is held by the stage that computes its next value.
      if (need[source->second.value] == 0)
        add(source->second, roles.role[maker.value] == Role::free ? only(0) : made_at(maker));
      add(output.value, need[source->second.value]);
    }
    for (std::size_t n = graph.node_count(); n-- > 0;) {
      const NodeView node = graph.view(NodeId(n));
      if (ops::is_source(node.op())) continue;
      Stages here = 0;
      if (roles.role[n] == Role::free)
        for (std::size_t k = 0; k < node.result_count(); ++k) here |= need[node.result(k).value];
      else
        here = made_at(node.id());
      for (const ValueId input : node.node().inputs) add(input, here);
    }
  }
  return need;
}

}  // namespace weft::pipeline
