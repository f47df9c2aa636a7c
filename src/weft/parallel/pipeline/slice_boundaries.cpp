#include "weft/parallel/pipeline/slice_boundaries.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/parallel/distribute/edit_plan.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/stage_boundaries.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::pipeline {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

namespace {

struct SliceAlong {
  std::size_t axis = 0;  // of the plan's mesh
  Symbol index;
  friend bool operator==(const SliceAlong&, const SliceAlong&) = default;
};

class BoundarySlicer {
 public:
  BoundarySlicer(const distribute::DistributedPlan& plan, std::vector<BoundaryValue> crossings)
      : plan_(plan), graph_(plan.graph), crossings_(std::move(crossings)), edit_(plan) {
    readers_.resize(graph_.value_count());
    is_output_.resize(graph_.value_count());
    slices_.resize(graph_.node_count());
    for (std::size_t n = 0; n < graph_.node_count(); ++n)
      for (const ValueId input : graph_.node(NodeId(n)).inputs) readers_[input.value].insert(NodeId(n));
    for (const plan::Output& output : graph_.outputs()) is_output_[output.value.value] = true;
  }

  Result<SlicedBoundaries> run() {
    for (const BoundaryValue& crossing : crossings_) {
      const std::optional<SliceAlong> along = best_slice(crossing.value);
      if (!along) {
        ++made_.whole;
        continue;
      }
      ++made_.sliced;
      const std::int64_t ranks = plan_.mesh.axes[along->axis].ranks;
      const std::int64_t bytes = bytes_of(crossing.value);
      made_.bytes += bytes;
      made_.sent += bytes / ranks;
      sent_along_.emplace(crossing.value, *along);
      for (const NodeId reader : crossing.readers) reads_.emplace(reader, crossing.value);
      mark(crossing.value, *along, std::set<NodeId>(crossing.readers.begin(), crossing.readers.end()));
    }
    for (std::size_t n = 0; n < graph_.node_count(); ++n) WEFT_TRY_STATUS(visit(graph_.view(NodeId(n))));
    WEFT_TRY(plan, edit_.finish());
    made_.plan = std::move(plan);
    return std::move(made_);
  }

 private:
  // Held per rank, over a whole step.
  std::int64_t bytes_of(ValueId value) const {
    std::int64_t bytes = graph_.type(value).bytes();
    const plan::Layout& layout = plan_.layouts[value.value];
    for (std::size_t axis = 0; axis < layout.axes.size(); ++axis)
      if (layout.axes[axis].is_sliced() && plan_.mesh.axes[axis].name != kMicroAxis)
        bytes /= plan_.mesh.axes[axis].ranks;
    return bytes;
  }

  bool is_sliced(ValueId value, Symbol index) const {
    return std::ranges::any_of(plan_.layouts[value.value].axes,
                               [&](const plan::AxisLayout& axis) { return axis.slices(index); });
  }

  // Along the replicated axis with the most ranks, and the first index that they divide evenly.
  std::optional<SliceAlong> best_slice(ValueId value) const {
    const plan::Layout& layout = plan_.layouts[value.value];
    if (std::ranges::any_of(layout.axes, &plan::AxisLayout::is_partial)) return std::nullopt;
    std::optional<SliceAlong> best;
    std::int32_t most = 1;
    for (std::size_t axis = 0; axis < layout.axes.size(); ++axis) {
      const plan::MeshAxis& along = plan_.mesh.axes[axis];
      if (along.name == kMicroAxis || along.ranks <= most || !layout.axes[axis].is_replicated()) continue;
      for (const plan::Dim& dim : graph_.type(value).dims)
        if (dim.size % along.ranks == 0 && !is_sliced(value, dim.index)) {
          best = SliceAlong{axis, dim.index};
          most = along.ranks;
          break;
        }
    }
    return best;
  }

  bool is_whole_on(ValueId value, std::size_t axis) const {
    return plan_.layouts[value.value].axes[axis].is_replicated();
  }

  // The producer makes a slice if only nodes of `only` read the value; likewise the producers of
  // its operands.
  void mark(ValueId value, const SliceAlong& along, const std::set<NodeId>& only) {
    const NodeId maker = graph_.value(value).producer;
    const NodeView node = graph_.view(maker);
    if (is_output_[value.value] || node.result_count() != 1 || readers_[value.value] != only ||
        slices_[maker.value])
      return;
    const std::string& axis = plan_.mesh.axes[along.axis].name;
    const bool sums = &node.op() == &ops::all_reduce() && node.input_count() == 1 && node.word(0) == axis;
    const bool is_elementwise = ops::is_pointwise(node.op()) || &node.op() == &ops::dropout();
    if (!sums && !is_elementwise) return;
    if (is_elementwise && !std::ranges::all_of(node.node().inputs, [&](ValueId input) {
          return is_whole_on(input, along.axis) && !is_sliced(input, along.index);
        }))
      return;
    if (sums && is_sliced(node.input(0), along.index)) return;
    slices_[maker.value] = along;
    if (sums) {
      ++made_.scattered;
      return;
    }
    for (const ValueId input : node.node().inputs) {
      const NodeId before = graph_.value(input).producer;
      if (graph_.type(input).has(along.index) && plan_.time->position[before.value] == place(maker) &&
          graph_.phase(before) == graph_.phase(maker))
        mark(input, along, {maker});
    }
  }

  std::int32_t place(NodeId node) const { return plan_.time->position[node.value]; }

  Result<ValueId> slice(ValueId value, const SliceAlong& along) {
    return ops::add_slice_across(edit_.graph(), value, plan_.mesh.axes[along.axis].name,
                                 edit_.symbol(along.index));
  }

  // A value from another stage, gathered here.
  Result<ValueId> arrived(ValueId value, NodeId reader) {
    ValueId& known = arrived_[{value, place(reader)}];
    if (known.valid()) return known;
    const SliceAlong& along = sent_along_.at(value);
    edit_.adopt_context(reader);
    WEFT_TRY(whole, ops::add_all_gather(edit_.graph(), sent_.at(value), plan_.mesh.axes[along.axis].name,
                                        edit_.symbol(along.index)));
    return known = whole;
  }

  Status visit(const NodeView& node) {
    const std::optional<SliceAlong>& along = slices_[node.id().value];
    std::vector<ValueId> inputs;
    for (const ValueId input : node.node().inputs) {
      const bool comes = reads_.contains({node.id(), input});
      if (comes && along && *along == sent_along_.at(input)) {
        inputs.push_back(sent_.at(input));  // it arrives as the required slice
        continue;
      }
      if (comes) {
        WEFT_TRY(whole, arrived(input, node.id()));
        inputs.push_back(whole);
      } else {
        inputs.push_back(edit_.now(input));
      }
      const bool is_slice = !comes && slices_[graph_.value(input).producer.value].has_value();
      if (!along || is_slice || &node.op() == &ops::all_reduce() || !graph_.type(input).has(along->index))
        continue;
      edit_.adopt_context(node.id());
      WEFT_TRY(part, slice(inputs.back(), *along));
      inputs.back() = part;
    }
    if (along && &node.op() == &ops::all_reduce()) {
      edit_.adopt_context(node.id());
      WEFT_TRY(part, ops::add_reduce_scatter(edit_.graph(), inputs[0], node.word(0),
                                             edit_.symbol(along->index), node.word(1)));
      edit_.become(node.result(0), part);
    } else {
      WEFT_TRY_STATUS(edit_.keep(node.id(), inputs));
    }
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const ValueId value = node.result(k);
      const auto sent = sent_along_.find(value);
      if (sent == sent_along_.end()) continue;
      sent_[value] = edit_.now(value);
      if (along) continue;
      edit_.adopt_context(node.id());
      WEFT_TRY(part, slice(edit_.now(value), sent->second));
      sent_[value] = part;
    }
    return {};
  }

  const distribute::DistributedPlan& plan_;
  const plan::Graph& graph_;
  const std::vector<BoundaryValue> crossings_;
  distribute::PlanEdit edit_;
  std::vector<std::set<NodeId>> readers_;  // by value
  std::vector<bool> is_output_;
  std::vector<std::optional<SliceAlong>> slices_;  // by node: the slice that it makes
  std::map<ValueId, SliceAlong> sent_along_;
  std::set<std::pair<NodeId, ValueId>> reads_;                   // a reader on another stage, and the value
  std::map<ValueId, ValueId> sent_;                              // the value sent in its place
  std::map<std::pair<ValueId, std::int32_t>, ValueId> arrived_;  // by value and position
  SlicedBoundaries made_;
};

}  // namespace

std::string print(const SlicedBoundaries& made) {
  std::string text =
      fmt::format("{} of {} values are sent between stages in slices, {} per rank and step for {}",
                  made.sliced, made.sliced + made.whole, print_bytes(static_cast<double>(made.sent)),
                  print_bytes(static_cast<double>(made.bytes)));
  if (made.scattered > 0)
    text += fmt::format("; {} all-reduce{} left as reduce-scatter", made.scattered,
                        made.scattered == 1 ? " is" : "s are");
  return text;
}

Result<SlicedBoundaries> slice_boundaries(const distribute::DistributedPlan& plan) {
  WEFT_TRY(crossings, boundary_values(plan));
  return BoundarySlicer(plan, std::move(crossings)).run();
}

}  // namespace weft::pipeline
