#include "weft/parallel/distribute/source_layouts.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::AxisLayout;
using plan::Layout;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// The layout that the readers of a value want on one axis: none yet, one, or conflicting ones.
class Wish {
 public:
  void add(const AxisLayout& layout) {
    if (!one_)
      one_ = layout;
    else if (*one_ != layout)
      one_ = AxisLayout::replicated();
  }
  AxisLayout value() const { return one_.value_or(AxisLayout::replicated()); }

 private:
  std::optional<AxisLayout> one_;
};

class SourceChooser {
 public:
  SourceChooser(const plan::Graph& graph, const Signatures& signatures, const LoopChoices& choices,
                const Distribution& distribution, const StageUses& uses, const Exceptions& exceptions,
                std::int64_t smallest_share)
      : graph_(graph),
        signatures_(signatures),
        choices_(choices),
        distribution_(distribution),
        uses_(uses),
        exceptions_(exceptions),
        smallest_share_(smallest_share),
        axes_(distribution.mesh.axes.size()) {
    found_.layouts.resize(graph.node_count());
    found_.updated.resize(graph.node_count());
  }

  SourceLayouts run() && {
    find_updates();
    gather_wishes();
    for (std::size_t n = 0; n < graph_.node_count(); ++n) place(graph_.view(NodeId(n)));
    for (std::size_t n = 0; n < graph_.node_count(); ++n)
      if (found_.updated[n].valid()) place_update(NodeId(n), found_.updated[n]);
    return std::move(found_);
  }

 private:
  void find_updates() {
    std::unordered_map<std::string_view, NodeId> parameters;
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(NodeId(n));
      if (&node.op() == &ops::parameter()) parameters.emplace(node.word(0), node.id());
    }
    for (const plan::Output& output : graph_.outputs()) {
      const auto parameter = parameters.find(graph_.updated(output));
      if (parameter != parameters.end()) note_update(output.value, parameter->second);
    }
  }

  // Finds the node that computes the next value. It reads the parameter itself or its master
  // weight. In the latter case the next parameter is that node's rounded result, possibly after a
  // select that may skip the step.
  void note_update(ValueId next, NodeId parameter) {
    const ValueId held = graph_.result(parameter);
    const auto reads = [&](NodeId node, ValueId value) {
      const std::span<const ValueId> inputs = graph_.node(node).inputs;
      return std::ranges::find(inputs, value) != inputs.end();
    };
    NodeId update = graph_.value(next).producer;
    if (graph_.value(next).type == graph_.value(held).type && reads(update, held)) {
      found_.updated[update.value] = parameter;
      return;
    }
    const NodeView rounding = graph_.view(update);
    if (&rounding.op() != &ops::cast()) return;
    std::vector<NodeId> way = {update};
    update = graph_.value(rounding.input(0)).producer;
    if (graph_.node(update).op == &ops::select()) {
      way.push_back(update);
      update = graph_.value(graph_.node(update).inputs[1]).producer;
    }
    const bool of_master = std::ranges::any_of(graph_.node(update).inputs, [&](ValueId input) {
      const NodeView source = graph_.view(graph_.value(input).producer);
      return &source.op() == &ops::state() && is_master(source.word(0), graph_.view(parameter).word(0)) &&
             graph_.value(input).type == graph_.value(rounding.input(0)).type;
    });
    if (!of_master) return;
    way.push_back(update);
    for (const NodeId node : way) found_.updated[node.value] = parameter;
  }

  static bool is_master(std::string_view state, std::string_view parameter) {
    constexpr std::string_view kMaster = ".master";  // train::kMasterSuffix
    return state.size() == parameter.size() + kMaster.size() && state.starts_with(parameter) &&
           state.ends_with(kMaster);
  }

  // From the last node to the first, so that wishes propagate through renames and casts.
  void gather_wishes() {
    wishes_.resize(graph_.value_count() * axes_);
    for (std::size_t n = graph_.node_count(); n-- > 0;) {
      const NodeView node = graph_.view(NodeId(n));
      if (found_.updated[n].valid()) continue;
      for (std::size_t i = 0; i < node.input_count(); ++i) {
        const NodeView producer = graph_.view(graph_.value(node.input(i)).producer);
        if (node.phase() != plan::Phase::forward && &producer.op() != &ops::input()) continue;
        for (std::size_t axis = 0; axis < axes_; ++axis)
          wishes_[node.input(i).value * axes_ + axis].add(wish_of(node, i, axis));
      }
    }
  }

  AxisLayout wish_of(const NodeView& node, std::size_t i, std::size_t axis) const {
    const plan::Signature& signature = signatures_.of(node.id());
    const auto sliced = [&](const plan::Loop& loop) {
      const int dim = loop.operands[i];
      return dim < 0 ? AxisLayout::replicated()
                     : AxisLayout::sliced(node.input_type(i).dims[static_cast<std::size_t>(dim)].index);
    };
    const LoopChoice choice = choices_.at(node.id(), axis);
    if (choice >= 0) return sliced(signature.loops[static_cast<std::size_t>(choice)]);
    if (choice != kUnlisted || node.input_count() != 1 || node.result_count() != 1 ||
        !is_elementwise(node, signature))
      return AxisLayout::replicated();
    const AxisLayout after = wishes_[node.result(0).value * axes_ + axis].value();
    if (!after.is_sliced()) return after;
    const int dim = node.result_type(0).position(after.index);
    for (const plan::Loop& loop : signature.loops)
      if (loop.results[0] == dim) return sliced(loop);
    return AxisLayout::replicated();
  }

  void place(const NodeView& node) {
    if (!ops::is_source(node.op())) return;
    Layout layout = Layout::replicated(distribution_.mesh);
    if (&node.op() != &ops::state())
      for (std::size_t axis = 0; axis < axes_; ++axis)
        layout.axes[axis] = wishes_[node.result(0).value * axes_ + axis].value();
    except(node.id(), layout);
    found_.layouts[node.id().value] = std::move(layout);
  }

  void except(NodeId source, Layout& layout) const {
    for (std::size_t axis = 0; axis < axes_; ++axis)
      if (const Symbol* said = exceptions_.find(source, axis))
        layout.axes[axis] = said->valid() ? AxisLayout::sliced(*said) : AxisLayout::replicated();
  }

  void place_update(NodeId update, NodeId parameter) {
    Layout& held = found_.layouts[parameter.value];
    Layout layout = held;
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      const Shard shard = uses_.on(update, axis).shard;
      if (shard == Shard::nothing || !held.axes[axis].is_replicated() ||
          exceptions_.find(parameter, axis) != nullptr)
        continue;
      const Symbol index = shard_index(graph_.type(graph_.result(parameter)), layout, axis);
      if (!index.valid()) continue;
      layout.axes[axis] = AxisLayout::sliced(index);
      if (shard == Shard::parameters) held.axes[axis] = layout.axes[axis];
    }
    // The operand of this dtype is the parameter or its master weight.
    const plan::Type type = graph_.type(graph_.result(parameter));
    for (const ValueId input : graph_.node(update).inputs) {
      const plan::Value& operand = graph_.value(input);
      if (graph_.node(operand.producer).op != &ops::state() ||
          !std::ranges::equal(graph_.type(input).dims, type.dims))
        continue;
      Layout of_state = layout;
      except(operand.producer, of_state);
      found_.layouts[operand.producer.value] = std::move(of_state);
    }
    found_.layouts[update.value] = std::move(layout);
  }

  // The largest index, preferring those that divide evenly. An index that an inner axis slices
  // would have to be joined there first; one that an outer axis slices is a last resort.
  Symbol shard_index(const plan::Type& type, const Layout& layout, std::size_t axis) const {
    const std::int64_t ranks = distribution_.mesh.axes[axis].ranks;
    std::int64_t elements = type.elements();
    for (std::size_t other = 0; other < axes_; ++other)
      if (layout.axes[other].is_sliced()) elements /= distribution_.mesh.axes[other].ranks;
    if (ranks == 1 || elements / ranks < smallest_share_) return {};
    struct Rank {
      bool uncut, even;
      std::int64_t size;
      auto operator<=>(const Rank&) const = default;
    };
    Rank best{false, false, 0};
    Symbol found;
    for (const plan::Dim& dim : type.dims) {
      Rank rank{true, true, dim.size};
      bool inside = false;
      for (std::size_t other = 0; other < axes_; ++other) {
        if (!layout.axes[other].is_sliced() || layout.axes[other].index != dim.index) continue;
        rank.uncut = false;
        rank.size = plan::share_of(rank.size, distribution_.mesh.axes[other].ranks, 0).size;
        inside |= other > axis;
      }
      rank.even = rank.size % ranks == 0;
      if (inside || rank.size < ranks || (found.valid() && rank <= best)) continue;
      best = rank;
      found = dim.index;
    }
    return found;
  }

  const plan::Graph& graph_;
  const Signatures& signatures_;
  const LoopChoices& choices_;
  const Distribution& distribution_;
  const StageUses& uses_;
  const Exceptions& exceptions_;
  std::int64_t smallest_share_;
  std::size_t axes_;
  std::vector<Wish> wishes_;  // by value and axis
  SourceLayouts found_;
};

}  // namespace

SourceLayouts choose_source_layouts(const plan::Graph& graph, const Signatures& signatures,
                                    const LoopChoices& choices, const Distribution& distribution,
                                    const StageUses& uses, const Exceptions& exceptions,
                                    std::int64_t smallest_share) {
  return SourceChooser(graph, signatures, choices, distribution, uses, exceptions, smallest_share).run();
}

}  // namespace weft::distribute
