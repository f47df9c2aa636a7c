#include "weft/parallel/pipeline/pipelined_plan.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/parallel/distribute/decompose_nodes.h"
#include "weft/parallel/distribute/stage_meshes.h"
#include "weft/parallel/pipeline/cut_parts.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/roles.h"
#include "weft/parallel/pipeline/verify.h"
#include "weft/parallel/train/chain.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"

namespace weft::pipeline {
namespace {

using distribute::Distribution;
using plan::Graph;
using plan::NodeId;
using plan::NodeView;

// By node of the single-device plan: its position; -1 if it is in no part.
Result<std::vector<std::int32_t>> places_of(const Graph& graph, std::int32_t places,
                                            std::span<const double> work,
                                            std::span<const std::size_t> known_ends) {
  std::vector<std::int32_t> found(graph.node_count(), places == 1 ? 0 : -1);
  if (places == 1) return found;
  const train::Chain chain = train::chain_of(graph, train::Skips::allowed);
  if (chain.parts.size() < static_cast<std::size_t>(places))
    return user_error(fmt::format("{} has {} parts in a row, but its stages need {}", graph.name,
                                  chain.parts.size(), places),
                      "use fewer stages or chunks");
  std::vector<std::size_t> ends(known_ends.begin(), known_ends.end());
  if (ends.size() != static_cast<std::size_t>(places) || ends.back() != chain.parts.size()) {
    const std::vector<double> flops =
        work.size() == chain.parts.size() ? std::vector<double>() : flops_of_parts(graph);
    ends = cut_parts(flops.empty() ? work : flops, static_cast<std::size_t>(places));
  }
  std::int32_t place = 0;
  for (std::size_t p = 0; p < chain.parts.size(); ++p) {
    while (p >= ends[static_cast<std::size_t>(place)]) ++place;
    for (const NodeId node : chain.parts[p].nodes) found[node.value] = place;
  }
  return found;
}

// By node: the stage whose mesh slices it. A node in no part follows what it reads, or else what
// reads it.
std::vector<std::int32_t> stages_of_nodes(const Graph& graph, const Schedule& schedule,
                                          std::vector<std::int32_t> places) {
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    for (const plan::ValueId input : graph.node(NodeId(n)).inputs)
      if (places[n] < 0) places[n] = places[graph.value(input).producer.value];
  for (std::size_t n = graph.node_count(); n-- > 0;)
    for (const plan::ValueId input : graph.node(NodeId(n)).inputs)
      if (std::int32_t& place = places[graph.value(input).producer.value]; place < 0) place = places[n];
  for (std::int32_t& place : places) place = owner_at(schedule, std::max(place, 0));
  return places;
}

// Rejects bidirectional schedules, where a position runs on two stages.
Status check_stage_meshes(const Distribution& distribution, const Schedule& schedule) {
  if (!distribute::has_stage_meshes(distribution)) return {};
  WEFT_TRY_STATUS(distribute::check_in_stages(distribution));
  for (std::size_t axis = 0; axis < distribution.axes.size(); ++axis)
    if (!distribution.axes[axis].takes.empty())
      return user_error(
          fmt::format(
              "stages have their own meshes, and ranks along {} take unequal numbers of micro-batches",
              distribution.mesh.axes[axis].name),
          "one of the two");
  for (std::int32_t place = 0; place < schedule.positions(); ++place) {
    const std::int32_t owner = owner_at(schedule, place);
    for (Stages stages = stages_at(schedule, place); stages != 0; stages &= stages - 1)
      if (const std::int32_t other = std::countr_zero(stages);
          distribute::as_in_stage(distribution, other) != distribute::as_in_stage(distribution, owner))
        return user_error(
            fmt::format("{} has the same layers on stages {} and {}, which have different meshes: {}, {}",
                        schedule.name, owner, other, distribute::print_stage_mesh(distribution, owner),
                        distribute::print_stage_mesh(distribution, other)),
            "use the same mesh for both, or another schedule");
  }
  return {};
}

Status check_shares(const Graph& graph, Symbol batch, std::int64_t micro, const Distribution& distribution) {
  std::int64_t shares = micro;
  for (const distribute::AxisUse& use : distribution.axes)
    if (std::ranges::find(use.slice, graph.text(batch)) != use.slice.end())
      shares *= distribution.mesh.axes[static_cast<std::size_t>(&use - distribution.axes.data())].ranks;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() != &ops::input() || !node.result_type(0).has(batch)) continue;
    const std::int64_t size = node.result_type(0).size_of(batch);
    if (size % shares == 0) continue;
    const std::string_view name = graph.text(batch);
    return user_error(
        shares == micro ? fmt::format("{} = {} cannot be split into {} micro-batches", name, size, micro)
                        : fmt::format("{} = {} cannot be split into {} micro-batches on each of {} ranks",
                                      name, size, micro, shares / micro),
        fmt::format("use {} = {}", name, std::max<std::int64_t>((size + shares / 2) / shares, 1) * shares));
  }
  return {};
}

Status check_batch(const Graph& graph, Symbol batch, const Distribution& distribution) {
  const auto axis = distribute::stage_axis(distribution);
  const std::int32_t stages =
      axis && distribute::has_stage_meshes(distribution) ? distribution.mesh.axes[*axis].ranks : 1;
  for (std::int32_t stage = 0; stage < stages; ++stage)
    WEFT_TRY_STATUS(check_shares(graph, batch, distribution.micro_batches,
                                 stages == 1 ? distribution : distribute::as_in_stage(distribution, stage)));
  return {};
}

// The fraction of a value that a rank holds.
double share_of_all(const plan::Layout& layout, const plan::Mesh& mesh) {
  double share = 1;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
    if (layout.axes[axis].is_sliced()) share /= mesh.axes[axis].ranks;
  return share;
}

// Communication that reduces a rank's data moves to the sending stage.
void shrink_before_sending(distribute::DistributedPlan& plan) {
  std::vector<std::int32_t>& places = plan.time->position;
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const NodeView node = plan.graph.view(NodeId(n));
    if (ops::find_communication(node.op()) == nullptr || node.input_count() != 1) continue;
    const NodeId maker = plan.graph.value(node.input(0)).producer;
    // A value from an earlier pass is already there; returning to its stage would have to go
    // through later ones.
    if (places[maker.value] < 0 || plan.graph.phase(maker) != node.phase()) continue;
    const plan::Layout &before = plan.layouts[node.input(0).value],
                       &after = plan.layouts[node.result(0).value];
    const bool sums = std::ranges::count_if(before.axes, &plan::AxisLayout::is_partial) >
                      std::ranges::count_if(after.axes, &plan::AxisLayout::is_partial);
    if (sums || share_of_all(after, plan.mesh) < share_of_all(before, plan.mesh))
      places[n] = places[maker.value];
  }
}

// The total is the same as with equal numbers, and ranks own disjoint rows.
Status check_micro_batches(const Graph& graph, const Distribution& distribution) {
  const std::string_view wanted = "for example: data=2: slice b, micro-batches 5:3; micro=4";
  std::size_t unequal = distribution.axes.size();
  for (std::size_t axis = 0; axis < distribution.axes.size(); ++axis) {
    const distribute::AxisUse& use = distribution.axes[axis];
    if (use.takes.empty()) continue;
    const std::string& name = distribution.mesh.axes[axis].name;
    if (unequal < distribution.axes.size())
      return user_error(
          fmt::format("ranks take unequal numbers of micro-batches along one axis, found {} and {}",
                      distribution.mesh.axes[unequal].name, name),
          std::string(wanted));
    unequal = axis;
    const std::int64_t all = std::accumulate(use.takes.begin(), use.takes.end(), std::int64_t{0});
    if (distribution.micro_batches == 1)
      return user_error(
          fmt::format("ranks along {} have {} micro-batches, but micro=N is missing", name, all),
          std::string(wanted));
    const std::int64_t ranks = distribution.mesh.axes[axis].ranks;
    if (all % ranks != 0 || all / ranks != distribution.micro_batches)
      return user_error(
          fmt::format("ranks along {} take {} micro-batches, and with micro={} there are {} x {}", name, all,
                      distribution.micro_batches, ranks, distribution.micro_batches),
          std::string(wanted));
  }
  if (unequal == distribution.axes.size()) return {};
  WEFT_TRY(batch, batch_index(graph));
  const std::vector<std::string>& slice = distribution.axes[unequal].slice;
  if (std::ranges::find(slice, graph.text(batch)) == slice.end())
    return user_error(
        fmt::format("ranks along {} take unequal numbers of micro-batches, and it does not slice {}",
                    distribution.mesh.axes[unequal].name, graph.text(batch)),
        std::string(wanted));
  // What a stage holds must not depend on the number of micro-batches, since its replicas reduce
  // gradients with each other.
  WEFT_TRY(equal, schedule_of(distribution));
  Distribution of_one = distribution;
  const std::vector<std::int64_t>& takes = distribution.axes[unequal].takes;
  for (const std::int64_t count : std::set<std::int64_t>(takes.begin(), takes.end())) {
    of_one.micro_batches = count;
    WEFT_TRY(own, schedule_of(of_one));
    for (std::int32_t place = 0; place < equal.positions(); ++place)
      if (own.positions() != equal.positions() || stages_at(own, place) != stages_at(equal, place))
        return user_error(fmt::format("with {}, schedule {} puts its parts on other stages than with {}",
                                      own.micro_batches, own.name, equal.micro_batches),
                          "use more micro-batches for ranks that have few, or another schedule");
  }
  return {};
}

// Ranks with unequal numbers of micro-batches cannot exchange data within a micro-batch.
Status check_exchanges(const distribute::DistributedPlan& plan, const Roles& roles) {
  const auto axis = unequal_axis(plan.time->distribution);
  if (!axis) return {};
  WEFT_TRY(batch, batch_index(plan.graph));
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const NodeView node = plan.graph.view(NodeId(n));
    if (&node.op() == &ops::input()) {
      const plan::AxisLayout& lies = plan.layouts[node.result(0).value].axes[*axis];
      for (const plan::Dim& dim : node.result_type(0).dims)
        if (lies.slices(dim.index) && dim.index != batch)
          return user_error(
              fmt::format("{} is sliced along {} by {}, whose ranks have unequal numbers of micro-batches",
                          describe(plan.graph, node.id()), plan.graph.text(dim.index),
                          plan.mesh.axes[*axis].name),
              "slice only the batch along it, or use equal numbers: remove `micro-batches ..:..`");
    }
    if (&node.op() == &ops::slice_across()) continue;  // local: a block of the rank's own data
    const ops::Communication* const moves = ops::find_communication(node.op());
    if (moves == nullptr || moves->axis(node) != plan.mesh.axes[*axis].name) continue;
    if (roles.role[n] == Role::micro || roles.each[n])
      return user_error(
          fmt::format(
              "{} is communicated along {} for every micro-batch, but ranks have unequal numbers of them",
              describe(plan.graph, node.id()), plan.mesh.axes[*axis].name),
          "use equal numbers: remove `micro-batches ..:..`");
  }
  return {};
}

// The mesh of a stage, with micro-batches as the last axis if there are several, or as the first
// for stages with different meshes.
plan::Mesh pipelined_mesh(const Distribution& distribution) {
  plan::Mesh mesh = distribute::within_stage(distribution).mesh;
  if (distribution.micro_batches > 1 || mesh.axes.empty())
    mesh.axes.insert(distribute::has_stage_meshes(distribution) ? mesh.axes.begin() : mesh.axes.end(),
                     {std::string(kMicroAxis), static_cast<std::int32_t>(distribution.micro_batches)});
  return mesh;
}

}  // namespace

Status take_places(distribute::DistributedPlan& plan) {
  WEFT_CHECK(plan.time.has_value());
  const Distribution& distribution = plan.time->distribution;
  WEFT_TRY(schedule, schedule_of(distribution));
  WEFT_TRY_STATUS(check_stage_meshes(distribution, schedule));
  if (const plan::Mesh wanted = pipelined_mesh(distribution); plan.mesh != wanted)
    return user_error(fmt::format("the plan has mesh {}, but the stages of its distribution have {}",
                                  print(plan.mesh), print(wanted)),
                      fmt::format("# mesh: {}", print(wanted)));
  std::vector<std::int32_t>& places = plan.time->position;
  if (places.size() != plan.graph.node_count())
    return user_error(fmt::format("expected one line per node: found {} nodes on {} lines",
                                  plan.graph.node_count(), places.size()));
  for (std::size_t n = 0; n < places.size(); ++n)
    if (places[n] >= schedule.positions())
      return user_error(fmt::format("{} is at place {}, but {} has the places 0 to {}",
                                    describe(plan.graph, NodeId(n)), places[n], print(distribution),
                                    schedule.positions() - 1));
  WEFT_TRY_STATUS(check_micro_batches(plan.graph, distribution));
  WEFT_TRY(roles, roles_of(plan));
  WEFT_TRY_STATUS(check_exchanges(plan, roles));
  const std::vector<std::int32_t> said = places;
  settle_positions(plan.graph, roles, places);
  for (std::int32_t place = 0; place < schedule.positions(); ++place)
    if (std::ranges::find(places, place) == places.end())
      return user_error(fmt::format("nothing is at place {}, but {} has the places 0 to {}", place,
                                    print(distribution), schedule.positions() - 1),
                        "use fewer stages or chunks, or nodes for all of them");
  for (std::size_t n = 0; n < places.size(); ++n)
    if (said[n] >= 0 && said[n] != places[n])
      return user_error(
          places[n] < 0 ? fmt::format("{} has place {}, but it is recreated wherever it is read",
                                      describe(plan.graph, NodeId(n)), said[n])
                        : fmt::format("{} cannot be at place {}: its input is at place {}, and micro-batches "
                                      "pass through the stages in one direction, gradients in the other",
                                      describe(plan.graph, NodeId(n)), said[n], places[n]));
  return {};
}

plan::Mesh inner_mesh(const Distribution& distribution) {
  return distribute::within_stage(distribution).mesh;
}

std::int32_t stage_of(const Distribution& distribution, std::int32_t rank) {
  const auto axis = distribute::stage_axis(distribution);
  return axis ? distribution.mesh.coordinate(rank, *axis) : 0;
}

std::int32_t inner_rank(const Distribution& distribution, std::int32_t rank) {
  std::int32_t inner = 0;
  for (const std::size_t axis : distribute::axes_within_stage(distribution))
    inner = inner * distribution.mesh.axes[axis].ranks + distribution.mesh.coordinate(rank, axis);
  return inner;
}

Result<Schedule> schedule_of(const Distribution& distribution) {
  const auto axis = distribute::stage_axis(distribution);
  const std::int32_t stages = axis ? distribution.mesh.axes[*axis].ranks : 1;
  const std::int32_t chunks = axis ? distribution.axes[*axis].chunks : 1;
  if (stages > kMostStages)
    return user_error(fmt::format("expected at most {} stages, found {}", kMostStages, stages));
  WEFT_TRY(text, find_schedule(distribution.schedule.empty() ? "1f1b" : distribution.schedule));
  std::map<std::string, double> parameters = {
      {"stages", stages}, {"micro_batches", static_cast<double>(distribution.micro_batches)}};
  const bool has_chunks = std::ranges::any_of(
      text->parameters, [](const ScheduleText::Parameter& parameter) { return parameter.name == "chunks"; });
  if (!has_chunks && chunks > 1)
    return user_error(fmt::format("schedule {} has one chunk per stage, found {}", text->name, chunks),
                      "interleaved, breadth_first and the V-shaped ones have several");
  if (chunks > 1) parameters["chunks"] = chunks;
  WEFT_TRY(schedule, unfold(*text, parameters));
  WEFT_TRY_STATUS(verify(schedule));
  return schedule;
}

Result<Schedule> schedule_of(const Distribution& distribution, std::int32_t rank) {
  Distribution own = distribution;
  own.micro_batches = taken_by(distribution, rank).count;
  return schedule_of(own);
}

std::optional<std::size_t> unequal_axis(const Distribution& distribution) {
  const std::vector<std::size_t> axes = distribute::axes_within_stage(distribution);
  for (std::size_t inner = 0; inner < axes.size(); ++inner)
    if (!distribution.axes[axes[inner]].takes.empty()) return inner;
  return {};
}

void fit_micro_batches(Distribution& distribution) {
  for (std::size_t axis = 0; axis < distribution.axes.size(); ++axis) {
    std::vector<std::int64_t>& takes = distribution.axes[axis].takes;
    if (takes.empty()) continue;
    takes.resize(static_cast<std::size_t>(distribution.mesh.axes[axis].ranks), 1);
    const std::int64_t all = distribution.micro_batches * distribution.mesh.axes[axis].ranks;
    std::vector<std::int64_t> fitted(takes.size(), 1);
    for (std::int64_t given = distribution.mesh.axes[axis].ranks; given < all; ++given) {
      const auto lacks = [&](std::size_t i) {
        return static_cast<double>(fitted[i]) / static_cast<double>(takes[i]);
      };
      std::size_t least = 0;
      for (std::size_t i = 1; i < takes.size(); ++i)
        if (lacks(i) < lacks(least)) least = i;
      ++fitted[least];
    }
    // Unequal numbers stay unequal if possible: a proof for equal ones would say nothing about
    // them.
    const auto [few, many] = std::ranges::minmax_element(takes);
    if (*few != *many && distribution.micro_batches > 1 &&
        std::ranges::adjacent_find(fitted, std::not_equal_to()) == fitted.end()) {
      --fitted[static_cast<std::size_t>(few - takes.begin())];
      ++fitted[static_cast<std::size_t>(many - takes.begin())];
    }
    takes = std::move(fitted);
  }
}

Taken taken_by(const Distribution& distribution, std::int32_t rank) {
  for (std::size_t axis = 0; axis < distribution.axes.size(); ++axis) {
    const std::vector<std::int64_t>& takes = distribution.axes[axis].takes;
    if (takes.empty()) continue;
    const auto at = static_cast<std::ptrdiff_t>(distribution.mesh.coordinate(rank, axis));
    return {std::accumulate(takes.begin(), takes.begin() + at, std::int64_t{0}),
            takes[static_cast<std::size_t>(at)]};
  }
  return {0, distribution.micro_batches};
}

plan::Layout layout_in_stage(const distribute::DistributedPlan& plan, plan::Layout layout) {
  if (const int micro = plan.mesh.find(kMicroAxis); micro >= 0)
    layout.axes.erase(layout.axes.begin() + micro);
  return layout;
}

std::vector<plan::Share> pipelined_shares(const distribute::DistributedPlan& plan, NodeId source,
                                          std::int32_t rank) {
  const Distribution& distribution = plan.time->distribution;
  const plan::Mesh mesh = inner_mesh(distribution);
  const plan::Type type = plan.graph.view(source).result_type(0);
  plan::Layout layout = layout_in_stage(plan, plan.layouts[plan.graph.result(source).value]);
  if (const int micro = plan.mesh.find(kMicroAxis); micro == 0 && plan.graph.node(source).op == &ops::input())
    for (plan::AxisLayout& lies : layout.axes)
      if (lies.is_sliced() && lies.index == plan.layouts[plan.graph.result(source).value].axes[0].index)
        lies = {};
  const auto axis = unequal_axis(distribution);
  plan::AxisLayout cut;
  if (axis && plan.graph.node(source).op == &ops::input()) std::swap(cut, layout.axes[*axis]);
  std::vector<plan::Share> shares = plan::shares_of(type, layout, mesh, inner_rank(distribution, rank));
  const Taken taken = taken_by(distribution, rank);
  for (std::size_t d = 0; d < type.dims.size(); ++d) {
    if (!cut.slices(type.dims[d].index)) continue;
    const std::int64_t rows = shares[d].size / (mesh.axes[*axis].ranks * distribution.micro_batches);
    shares[d] = {shares[d].begin + taken.first * rows, taken.count * rows};
  }
  return shares;
}

Result<Symbol> batch_index(const Graph& graph) {
  Symbol batch;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() != &ops::input() || node.result_type(0).rank() == 0) continue;
    const Symbol first = node.result_type(0).dims[0].index;
    if (batch.valid() && batch != first)
      return user_error(fmt::format("inputs that begin with {} and {} cannot share micro-batches",
                                    graph.text(batch), graph.text(first)),
                        "start every input with the batch index");
    batch = first;
  }
  if (!batch.valid())
    return user_error(fmt::format("{} has no input to split into micro-batches", graph.name));
  return batch;
}

Result<distribute::DistributedPlan> distribute_pipelined(const Graph& graph, const Distribution& distribution,
                                                         const distribute::DistributeOptions& options,
                                                         std::span<const double> work,
                                                         std::span<const std::size_t> ends) {
  WEFT_TRY(schedule, schedule_of(distribution));
  WEFT_TRY_STATUS(check_stage_meshes(distribution, schedule));
  WEFT_TRY_STATUS(check_micro_batches(graph, distribution));
  Distribution inner = distribute::within_stage(distribution);
  distribute::DistributeOptions how = options;
  how.prices.resize(inner.mesh.axes.size());
  if (distribution.micro_batches > 1) {
    WEFT_TRY(batch, batch_index(graph));
    WEFT_TRY_STATUS(check_batch(graph, batch, distribution));
    if (inner.mesh.find(kMicroAxis) >= 0)
      return user_error("an axis cannot be named micro, which stands for micro-batches", "rename the axis");
    const auto at = distribute::has_stage_meshes(distribution)
                        ? std::ptrdiff_t{0}
                        : static_cast<std::ptrdiff_t>(inner.mesh.axes.size());
    inner.mesh = pipelined_mesh(distribution);
    inner.axes.insert(inner.axes.begin() + at, {.slice = {std::string(graph.text(batch))}});
    how.prices.insert(how.prices.begin() + at,
                      {.latency_seconds = 0, .bytes_per_second = 1e18, .in_time = true});
  } else if (inner.mesh.axes.empty()) {
    inner.mesh.axes.push_back({std::string(kMicroAxis), 1});
    inner.axes.emplace_back();
    how.prices.emplace_back();
  }
  how.stages = [&](const Graph& one) -> Result<std::vector<std::int32_t>> {
    WEFT_TRY(found, places_of(one, schedule.positions(), work, ends));
    return stages_of_nodes(one, schedule, std::move(found));
  };
  WEFT_TRY(plan, distribute::distribute(graph, inner, how));
  Graph opened;
  if (!plan.opened.empty()) {
    WEFT_TRY(open, distribute::decompose_nodes(graph, plan.opened));
    opened = std::move(open);
  }
  WEFT_TRY(places, places_of(plan.opened.empty() ? graph : opened, schedule.positions(), work, ends));
  plan.time = distribute::PipelineInfo{distribution, {}};
  for (const NodeId origin : plan.origin)
    plan.time->position.push_back(origin.valid() ? places[origin.value] : -1);
  if (distribute::has_stage_meshes(distribution)) shrink_before_sending(plan);
  WEFT_TRY(roles, roles_of(plan));
  WEFT_TRY_STATUS(check_exchanges(plan, roles));
  settle_positions(plan.graph, roles, plan.time->position);
  return plan;
}

}  // namespace weft::pipeline
