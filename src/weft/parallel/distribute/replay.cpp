#include "weft/parallel/distribute/replay.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/parallel/distribute/concat_boundaries.h"
#include "weft/parallel/distribute/decompose_nodes.h"
#include "weft/parallel/distribute/other_sizes.h"
#include "weft/parallel/distribute/proof_meshes.h"
#include "weft/parallel/distribute/tiles.h"
#include "weft/plan/graph/settle_phases.h"
#include "weft/plan/graph/transplant.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/sliding.h"
#include "weft/plan/spmd/layouts.h"

namespace weft::distribute {
namespace {

using plan::NodeId;
using plan::ValueId;

Status check_alike(const plan::Graph& original, const plan::Graph& other) {
  if (original.node_count() != other.node_count())
    return user_error(fmt::format("the plans differ in more than their sizes: {} nodes and {}",
                                  original.node_count(), other.node_count()));
  for (std::size_t n = 0; n < original.node_count(); ++n)
    if (original.node(NodeId(n)).op != other.node(NodeId(n)).op)
      return user_error(fmt::format("the plans differ in more than their sizes: {} and {}",
                                    describe(original, NodeId(n)), describe(other, NodeId(n))));
  return {};
}

constexpr std::size_t kMeanKeeps = 1, kMeanCount = 2, kPositions = 1;  // attributes

bool states_sizes(const plan::Operator& op) {
  return &op == &ops::position() || std::ranges::find(op.attributes(), plan::AttributeKind::type,
                                                      &plan::AttributeSpec::kind) != op.attributes().end();
}

// Adds a node of the plan's own with attributes that state the size of its result or depend on
// sizes.
Result<NodeId> add_sized(plan::Graph& graph, const plan::NodeView& node, std::span<const ValueId> inputs,
                         plan::Transplant& moved, const OtherSizes& sizes) {
  const std::span<const plan::AttributeSpec> specs = node.op().attributes();
  std::vector<std::vector<Symbol>> lists(specs.size());
  std::vector<plan::AttributeValue> attributes;
  for (std::size_t k = 0; k < specs.size(); ++k) switch (specs[k].kind) {
      case plan::AttributeKind::integer: attributes.emplace_back(node.integer(k)); break;
      case plan::AttributeKind::real: {
        WEFT_TRY(number, sizes.of_number(node, k));
        attributes.emplace_back(number);
        break;
      }
      case plan::AttributeKind::word:
      case plan::AttributeKind::index: attributes.emplace_back(moved.symbol(node.symbol(k))); break;
      case plan::AttributeKind::indices:
        for (const Symbol index : node.indices(k)) lists[k].push_back(moved.symbol(index));
        attributes.emplace_back(std::span<const Symbol>(lists[k]));
        break;
      case plan::AttributeKind::dtype: attributes.emplace_back(node.dtype(k)); break;
      case plan::AttributeKind::type: {
        std::vector<plan::Dim> dims;
        for (const plan::Dim& dim : node.type(k).dims) {
          WEFT_TRY(size, sizes.of(node.text(dim.index), dim.size));
          dims.push_back({moved.symbol(dim.index), size});
        }
        WEFT_TRY(type, graph.intern_type(node.type(k).dtype, dims));
        attributes.emplace_back(type);
      }
    }
  if (&node.op() == &ops::position()) {
    const plan::Dim dim = node.result_type(0).dims[0];
    WEFT_TRY(size, sizes.of(node.text(dim.index), dim.size));
    attributes[kPositions] = size;
  }
  return graph.add(node.op(), inputs, attributes);
}

// By node of the plan: for a halo, the widest borders that its readers need at the other sizes.
// Blocks that align at one size may not align at another. The plan's own borders are validated by
// its own layouts.
std::vector<ops::Borders> borders_needed(const DistributedPlan& plan, const plan::Graph& other,
                                         const plan::Mesh& mesh) {
  std::vector<ops::Borders> needed(plan.graph.node_count());
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView reader = plan.graph.view(NodeId(n));
    if (ops::find_communication(reader.op()) != nullptr) continue;
    for (std::size_t i = 0; i < reader.input_count(); ++i) {
      // Several halos may follow one another, such as rows after columns, or a halo may follow a
      // gather.
      for (ValueId read = reader.input(i);;
           read = plan.graph.view(plan.graph.value(read).producer).input(plan.graph.value(read).result)) {
        const NodeId from = plan.graph.value(read).producer;
        const plan::NodeView halo = plan.graph.view(from);
        if (ops::find_communication(halo.op()) == nullptr) break;
        if (&halo.op() != &ops::halo()) continue;
        const auto axis = static_cast<std::size_t>(plan.mesh.find(halo.word(0)));
        const int dim = halo.result_type(0).position(halo.symbol(1));
        const plan::NodeView small = plan.is_own(NodeId(n)) ? reader : other.view(plan.origin[n]);
        for (const ops::Sliding& sliding : ops::sliding_loops(small)) {
          if (small.op().signature(small).loops[sliding.loop].operands[i] != dim) continue;
          const ops::Borders borders = sliding.borders(i, mesh.axes[axis].ranks);
          needed[from.value].before = std::max(needed[from.value].before, borders.before);
          needed[from.value].after = std::max(needed[from.value].after, borders.after);
        }
      }
    }
  }
  return needed;
}

// Adds a slice of the plan's own, with its bounds at these sizes.
Result<NodeId> add_slice(plan::Graph& graph, const plan::NodeView& slice, std::span<const ValueId> inputs,
                         plan::Transplant& moved, const OtherSizes& sizes, const TileSlices& tiles) {
  const Symbol along = moved.symbol(slice.symbol(0));
  if (graph.type(inputs[0]).size_of(along) == slice.input_type(0).size_of(slice.symbol(0)))
    return moved.node(slice.id(), inputs);
  Result<Stretch> stretch = resized_slice(slice, graph, inputs[0], along);
  if (!stretch.ok())
    if (const auto tile = tiles.at(slice.id(), graph.type(inputs[0]).size_of(along))) stretch = *tile;
  if (const Result<Stretch> known =
          sizes.of_slice(slice.text(slice.symbol(0)), slice.input_type(0).size_of(slice.symbol(0)),
                         {slice.integer(1), slice.integer(2)});
      !stretch.ok() && known.ok())
    stretch = known;
  WEFT_TRY_STATUS(stretch);
  const std::array<plan::AttributeValue, 3> attributes = {along, stretch->begin, stretch->end};
  return graph.add(ops::slice(), inputs, attributes);
}

// Adds a split of the plan's own: into the model's sizes of these indices, or into the ranks'
// blocks.
Result<NodeId> add_split(plan::Graph& graph, const plan::NodeView& split, std::span<const ValueId> inputs,
                         plan::Transplant& moved, const OtherSizes& sizes, const DistributedPlan& plan,
                         const plan::Mesh& mesh) {
  Result<NodeId> sized = add_sized(graph, split, inputs, moved, sizes);
  const auto blocks = sized.ok() ? std::nullopt : blocks_at(plan, split, mesh);
  if (!blocks) return sized;
  const Symbol along = moved.symbol(split.symbol(0));
  const std::int64_t size = graph.type(inputs[0]).size_of(along);
  if (size % *blocks != 0)
    return user_error(
        fmt::format("{} of {} does not split into {} equal blocks", graph.text(along), size, *blocks));
  const auto dims = split.type(1).dims;
  const std::array<plan::Dim, 2> into = {plan::Dim{moved.symbol(dims[0].index), *blocks},
                                         plan::Dim{moved.symbol(dims[1].index), size / *blocks}};
  WEFT_TRY(type, graph.intern_type(split.type(1).dtype, into));
  const std::array<plan::AttributeValue, 2> attributes = {along, type};
  return graph.add(ops::split(), inputs, attributes);
}

// Adds a permutation by the same number of ranks, in the direction that is shorter on the plan's
// own mesh.
Result<NodeId> add_permutation(plan::Graph& graph, const plan::NodeView& permutation,
                               std::span<const ValueId> inputs, const plan::Mesh& mesh) {
  const std::int32_t ranks = mesh.axes[static_cast<std::size_t>(mesh.find(permutation.word(0)))].ranks;
  const std::array<plan::AttributeValue, 2> attributes = {graph.symbol(permutation.word(0)),
                                                          shortest_shift(permutation.integer(1), ranks)};
  return graph.add(ops::permute_ranks(), inputs, attributes);
}

// Adds a mean of the plan's own; if it divides by the number of reduced elements, the divisor
// follows these sizes.
Result<NodeId> add_mean(plan::Graph& graph, const plan::NodeView& mean, std::span<const ValueId> inputs,
                        plan::Transplant& moved) {
  const auto reduced = [](const plan::Type& type, const plan::Graph& names, auto&& keeps) {
    std::int64_t count = 1;
    for (const plan::Dim& dim : type.dims)
      if (!keeps(names.text(dim.index))) count *= dim.size;
    return count;
  };
  const auto keeps = [&](std::string_view index) {
    return std::ranges::any_of(mean.indices(kMeanKeeps),
                               [&](Symbol kept) { return mean.text(kept) == index; });
  };
  const std::int64_t before = reduced(mean.input_type(0), mean.graph(), keeps);
  plan::AttributeValue count = mean.integer(kMeanCount);
  if (mean.integer(kMeanCount) == before) count = reduced(graph.type(inputs[0]), graph, keeps);
  return moved.node(mean.id(), inputs, &count);
}

// One row per rank of the other mesh.
Result<NodeId> add_addends(plan::Graph& graph, const plan::NodeView& addends, std::span<const ValueId> inputs,
                           plan::Transplant& moved, const plan::Mesh& mesh) {
  const auto axis = static_cast<std::size_t>(mesh.find(addends.word(0)));
  const std::array<plan::AttributeValue, 3> attributes = {
      graph.symbol(addends.word(0)), moved.symbol(addends.symbol(1)), std::int64_t{mesh.axes[axis].ranks}};
  return graph.add(ops::addends(), inputs, attributes);
}

Result<NodeId> add_halo(plan::Graph& graph, const plan::NodeView& halo, std::span<const ValueId> inputs,
                        plan::Transplant& moved, const ops::Borders& borders) {
  const std::array<plan::AttributeValue, 4> attributes = {
      graph.symbol(halo.word(0)), moved.symbol(halo.symbol(1)), borders.before, borders.after};
  return graph.add(ops::halo(), inputs, attributes);
}

}  // namespace

Result<DistributedPlan> replay(const DistributedPlan& plan, const plan::Graph& original,
                               const plan::Graph& other, const plan::Mesh& mesh) {
  WEFT_TRY_STATUS(check_alike(original, other));
  DistributedPlan made;
  made.mesh = mesh;
  made.graph.name = plan.graph.name;
  made.opened = plan.opened;
  made.origin = plan.origin;
  made.own = plan.own;
  plan::Graph open;
  if (!plan.opened.empty()) {
    WEFT_TRY(opened, decompose_nodes(other, plan.opened));
    open = std::move(opened);
  }
  const plan::Graph& one_device = plan.opened.empty() ? other : open;
  if (plan.opened.empty()) {
    WEFT_TRY_STATUS(check_numbers(plan, original, other));
  } else {
    WEFT_TRY(large, decompose_nodes(original, plan.opened));
    WEFT_TRY_STATUS(check_numbers(plan, large, open));
  }
  plan::Transplant moved(plan.graph, made.graph), computed(one_device, made.graph);
  const std::vector<ops::Borders> borders = borders_needed(plan, one_device, mesh);
  const OtherSizes sizes(original, other);
  const TileSlices tiles(plan);
  std::vector<ValueId> values(plan.graph.value_count());
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(NodeId(n));
    std::vector<ValueId> inputs;
    for (const ValueId input : node.node().inputs) inputs.push_back(values[input.value]);
    made.graph.set_label(node.node().label.valid() ? moved.symbol(node.node().label) : Symbol());
    made.graph.set_when(node.node().when);
    const bool as_written = ops::find_communication(node.op()) != nullptr || plan.is_own(NodeId(n));
    plan::AttributeValue layout;
    if (ops::is_source(node.op())) layout = made.graph.symbol(ops::layout_of(node));
    const plan::Operator* op = &node.op();
    Result<NodeId> added =
        op == &ops::halo()            ? add_halo(made.graph, node, inputs, moved, borders[n])
        : op == &ops::addends()       ? add_addends(made.graph, node, inputs, moved, mesh)
        : op == &ops::permute_ranks() ? add_permutation(made.graph, node, inputs, plan.mesh)
        : !as_written ? computed.node(plan.origin[n], inputs, ops::is_source(node.op()) ? &layout : nullptr)
        : op == &ops::split() ? add_split(made.graph, node, inputs, moved, sizes, plan, mesh)
        : states_sizes(*op) || sizes.change_number(node) ? add_sized(made.graph, node, inputs, moved, sizes)
        : op == &ops::slice()  ? add_slice(made.graph, node, inputs, moved, sizes, tiles)
        : op == &ops::reduce() ? add_mean(made.graph, node, inputs, moved)
                               : moved.node(node.id(), inputs);
    if (!added.ok()) {
      Error error = std::move(added).error();
      error.message = fmt::format("node {}: {}", describe(plan.graph, node.id()), error.message);
      return error;
    }
    for (std::size_t k = 0; k < node.result_count(); ++k)
      values[node.result(k).value] = made.graph.result(*added, k);
  }
  for (const plan::Output& output : plan.graph.outputs()) moved.output(output, values[output.value.value]);
  // Nodes got their phases from the original, but the plan may run them earlier.
  WEFT_TRY_STATUS(plan::settle_phases(made.graph));
  WEFT_TRY(layouts, spmd::infer_layouts(made.graph, mesh));
  made.layouts = std::move(layouts);
  return made;
}

}  // namespace weft::distribute
