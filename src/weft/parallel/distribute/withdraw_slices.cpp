#include "weft/parallel/distribute/withdraw_slices.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

using plan::Loop;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

// The longest chain of elementwise readers that is followed.
constexpr int kDeepest = 8;

class TakeBack {
 public:
  TakeBack(const plan::Graph& graph, const Signatures& signatures, const plan::Mesh& mesh,
           const StageUses& uses, const Exceptions& exceptions, LoopChoices& choices)
      : graph_(graph),
        signatures_(signatures),
        mesh_(mesh),
        uses_(uses),
        exceptions_(exceptions),
        choices_(choices),
        readers_(graph.value_count()) {
    for (std::size_t n = 0; n < graph.node_count(); ++n)
      if (is_forward(NodeId(n)))
        for (const ValueId input : graph.node(NodeId(n)).inputs) readers_[input.value].push_back(NodeId(n));
  }

  void run() {
    for (std::size_t n = 0; n < graph_.node_count(); ++n)
      for (std::size_t axis = 0; axis < mesh_.axes.size() && is_forward(NodeId(n)); ++axis) {
        // With only one listed index there is no alternative.
        if (uses_.lists(NodeId(n))[axis].size() > 1 && exceptions_.find(NodeId(n), axis) == nullptr)
          look_at(graph_.view(NodeId(n)), axis);
      }
    for (std::size_t n = 0; n < graph_.node_count() && !taken_.empty(); ++n)
      if (!is_forward(NodeId(n))) follow(graph_.view(NodeId(n)));
  }

 private:
  bool is_forward(NodeId node) const { return graph_.phase(node) == plan::Phase::forward; }

  // Label, scope, operand, axis and index of a slice that was withdrawn.
  using Taken = std::tuple<Symbol, plan::ScopeId, ValueId, std::size_t, Symbol>;

  void look_at(const NodeView& node, std::size_t axis) {
    const LoopChoice choice = choices_.at(node.id(), axis);
    if (choice < 0) return;
    const plan::Signature& signature = signatures_.of(node.id());
    const Loop& loop = signature.loops[static_cast<std::size_t>(choice)];
    if (loop.role != plan::Role::parallel || !is_needed_whole(node.result(0), loop.results[0]) ||
        node.op().work(node).multiply_adds == 0)
      return;
    const IndexList& list = uses_.lists(node.id())[axis];
    const auto index = std::ranges::find_if(list, [&](Symbol i) { return bears(node, loop, i); });
    if (index == list.end()) return;
    const std::vector<LoopChoice> others = without(node, axis, *index);
    if (others[axis] < 0) return;
    const Loop& other = signature.loops[static_cast<std::size_t>(others[axis])];
    const double gathered = static_cast<double>(node.result_type(0).bytes());
    if (moved_for(node, other, axis) >= moved_for(node, loop, axis) + gathered) return;
    set(node, others);
    for (const ValueId input : node.node().inputs)
      taken_.insert({node.node().label, node.node().scope, input, axis, *index});
  }

  // Whether all readers need that dim whole, following a chain of elementwise readers.
  bool is_needed_whole(ValueId value, int dim) const {
    for (int depth = 0; depth < kDeepest; ++depth) {
      const std::vector<NodeId>& readers = readers_[value.value];
      if (readers.size() != 1 || !is_elementwise(graph_.view(readers[0]), signatures_.of(readers[0])))
        return !readers.empty() && std::ranges::all_of(readers, [&](NodeId reader) {
          const Loop* loop = loop_in(reader, value, dim);
          return loop != nullptr && loop->role == plan::Role::whole;
        });
      const Loop* loop = loop_in(readers[0], value, dim);
      if (loop == nullptr) return false;
      value = graph_.result(readers[0]);
      dim = loop->results[0];
    }
    return false;
  }

  const Loop* loop_in(NodeId reader, ValueId value, int dim) const {
    const std::span<const ValueId> inputs = graph_.node(reader).inputs;
    const auto at = static_cast<std::size_t>(std::ranges::find(inputs, value) - inputs.begin());
    for (const Loop& loop : signatures_.of(reader).loops)
      if (loop.operands[at] == dim) return &loop;
    return nullptr;
  }

  // Bytes moved over the axis if the node is sliced along the loop: operands with another layout,
  // and gradients of parameters that it needs whole, which are summed over the ranks.
  double moved_for(const NodeView& node, const Loop& loop, std::size_t axis) const {
    double moved = 0;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const double bytes = static_cast<double>(node.input_type(i).bytes());
      const int dim = loop.operands[i];
      if (is_parameter(node.input(i))) {
        if (dim < 0) moved += 2 * bytes;
        continue;
      }
      const int made = made_along(node.input(i), axis);
      if (made >= 0 && made != dim) moved += bytes;
    }
    return moved;
  }

  // The dim along which the value is sliced where it is made; -1 if it is whole or adapts to its
  // readers.
  int made_along(ValueId value, std::size_t axis) const {
    const NodeView producer = graph_.view(graph_.value(value).producer);
    const LoopChoice choice = choices_.at(producer.id(), axis);
    if (ops::is_source(producer.op()) || choice < 0) return -1;
    return signatures_.of(producer.id())
        .loops[static_cast<std::size_t>(choice)]
        .results[graph_.value(value).result];
  }

  bool is_parameter(ValueId value) const {
    for (int depth = 0; depth < kDeepest; ++depth) {
      const NodeView node = graph_.view(graph_.value(value).producer);
      if (&node.op() == &ops::parameter()) return true;
      if (node.input_count() != 1) return false;
      value = node.input(0);
    }
    return false;
  }

  // The gradients of a product share its operands and its label, and are sliced as it is.
  void follow(const NodeView& node) {
    for (std::size_t axis = 0; axis < mesh_.axes.size(); ++axis) {
      const LoopChoice choice = choices_.at(node.id(), axis);
      if (choice < 0 || exceptions_.find(node.id(), axis) != nullptr) continue;
      const Loop& loop = signatures_.of(node.id()).loops[static_cast<std::size_t>(choice)];
      const IndexList& list = uses_.lists(node.id())[axis];
      const auto index = std::ranges::find_if(list, [&](Symbol i) { return bears(node, loop, i); });
      if (index == list.end()) continue;
      const bool taken = std::ranges::any_of(node.node().inputs, [&](ValueId input) {
        return taken_.contains({node.node().label, node.node().scope, input, axis, *index});
      });
      if (taken) set(node, without(node, axis, *index));
    }
  }

  std::vector<LoopChoice> without(const NodeView& node, std::size_t axis, Symbol index) const {
    const std::span<const IndexList> listed = uses_.lists(node.id());
    std::vector<IndexList> lists(listed.begin(), listed.end());
    std::erase(lists[axis], index);
    return loops_of(node, signatures_.of(node.id()), mesh_, lists, exceptions_);
  }

  void set(const NodeView& node, const std::vector<LoopChoice>& chosen) {
    for (std::size_t axis = 0; axis < chosen.size(); ++axis) choices_.set(node.id(), axis, chosen[axis]);
  }

  const plan::Graph& graph_;
  const Signatures& signatures_;
  const plan::Mesh& mesh_;
  const StageUses& uses_;
  const Exceptions& exceptions_;
  LoopChoices& choices_;
  std::vector<std::vector<NodeId>> readers_;  // by value, in the forward pass
  std::set<Taken> taken_;
};

}  // namespace

void withdraw_slices(const plan::Graph& graph, const Signatures& signatures, const plan::Mesh& mesh,
                     const StageUses& uses, const Exceptions& exceptions, LoopChoices& choices) {
  if (!uses.has_choices()) return;
  TakeBack(graph, signatures, mesh, uses, exceptions, choices).run();
}

}  // namespace weft::distribute
