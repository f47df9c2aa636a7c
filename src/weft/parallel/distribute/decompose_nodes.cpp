#include "weft/parallel/distribute/decompose_nodes.h"

#include <algorithm>

#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/decompose_rows.h"

namespace weft::distribute {
namespace {

using plan::Loop;
using plan::NodeId;
using plan::NodeView;
using plan::Role;
using plan::ValueId;

bool can_open_along(const NodeView& node, const Loop& loop) {
  return loop.role == Role::whole &&
         std::ranges::find(spmd::decomposable_rows(node), loop.index) != spmd::decomposable_rows(node).end();
}

// The loop that the first listed index would slice, including whole loops that decomposing the node
// makes parallel; -1 if there is none. `left`: by loop, the iterations per rank after the slices of
// outer axes.
int first_loop(const NodeView& node, const plan::Signature& signature, std::span<const Symbol> list,
               std::int32_t ranks, std::span<const std::int64_t> left) {
  for (const Symbol index : list)
    for (std::size_t l = 0; l < signature.loops.size(); ++l) {
      const Loop& loop = signature.loops[l];
      if (!bears(node, loop, index) || !has_operand(loop) || left[l] < ranks) continue;
      if (loop.role != Role::whole || can_open_along(node, loop)) return static_cast<int>(l);
    }
  return -1;
}

class DecompositionChooser {
 public:
  DecompositionChooser(const plan::Graph& graph, const Signatures& signatures, const plan::Mesh& mesh,
                       const StageUses& uses, const Exceptions& exceptions)
      : graph_(graph), signatures_(signatures), mesh_(mesh), uses_(uses), exceptions_(exceptions) {}

  std::vector<NodeId> run() {
    std::vector<NodeId> opened;
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(NodeId(n));
      if (ops::is_source(node.op()) || spmd::decomposable_rows(node).empty()) continue;
      if (const Loop* loop = cut_loop(node); loop != nullptr && !is_needed_whole(node, *loop))
        opened.push_back(NodeId(n));
    }
    return opened;
  }

 private:
  // The loop that some axis should slice but that the node needs whole unless decomposed.
  const Loop* cut_loop(const NodeView& node) const {
    const plan::Signature& signature = signatures_.of(node.id());
    std::vector<std::int64_t> left;
    for (const Loop& loop : signature.loops) left.push_back(loop.size);
    for (std::size_t axis = 0; axis < mesh_.axes.size(); ++axis) {
      const std::int32_t ranks = mesh_.axes[axis].ranks;
      const Symbol* said = exceptions_.find(node.id(), axis);
      if (ranks == 1 || (said != nullptr && !said->valid())) continue;
      const std::span<const Symbol> list =
          said == nullptr ? std::span<const Symbol>(uses_.lists(node.id())[axis]) : std::span(said, 1);
      const int found = first_loop(node, signature, list, ranks, left);
      if (found < 0) continue;
      const auto at = static_cast<std::size_t>(found);
      if (signature.loops[at].role == Role::whole) return &signature.loops[at];
      left[at] = (left[at] + ranks - 1) / ranks;
    }
    return nullptr;
  }

  bool is_needed_whole(const NodeView& node, const Loop& loop) {
    if (loop.results[0] < 0) return false;
    if (readers_.empty()) find_readers();
    const auto needs_whole = [&](NodeId reader) {
      const NodeView view = graph_.view(reader);
      const plan::Signature& signature = signatures_.of(reader);
      for (std::size_t i = 0; i < view.input_count(); ++i) {
        if (view.input(i) != node.result(0)) continue;
        for (const Loop& read : signature.loops)
          if (read.operands[i] == loop.results[0] && read.role == Role::whole && !can_open_along(view, read))
            return true;
      }
      return false;
    };
    return std::ranges::any_of(readers_[node.result(0).value], needs_whole);
  }

  void find_readers() {
    readers_.resize(graph_.value_count());
    for (std::size_t n = 0; n < graph_.node_count(); ++n)
      for (const ValueId input : graph_.node(NodeId(n)).inputs) readers_[input.value].push_back(NodeId(n));
  }

  const plan::Graph& graph_;
  const Signatures& signatures_;
  const plan::Mesh& mesh_;
  const StageUses& uses_;
  const Exceptions& exceptions_;
  std::vector<std::vector<NodeId>> readers_;  // by value, computed on first use
};

}  // namespace

std::vector<NodeId> choose_decompositions(const plan::Graph& graph, const Signatures& signatures,
                                          const plan::Mesh& mesh, const StageUses& uses,
                                          const Exceptions& exceptions) {
  return DecompositionChooser(graph, signatures, mesh, uses, exceptions).run();
}

Result<plan::Graph> decompose_nodes(const plan::Graph& graph, std::span<const NodeId> nodes) {
  plan::Graph made;
  made.name = graph.name;
  for (std::size_t s = 0; s < graph.symbols().size(); ++s) made.symbol(graph.text(Symbol(s)));
  for (std::size_t s = 0; s < graph.scope_count(); ++s) made.add_scope(graph.scope(plan::ScopeId(s)));
  plan::Transplant transplant(graph, made);
  spmd::RowDecomposer opener(made);
  std::vector<ValueId> values(graph.value_count()), inputs;
  auto next = nodes.begin();
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    made.set_label(node.node().label);
    made.set_scope(node.node().scope);
    made.set_when(node.node().when);
    inputs.clear();
    for (const ValueId input : node.node().inputs) inputs.push_back(values[input.value]);
    if (next != nodes.end() && *next == node.id()) {
      ++next;
      WEFT_TRY(opened, opener.open(node, inputs));
      for (std::size_t k = 0; k < opened.size(); ++k) values[node.result(k).value] = opened[k];
      continue;
    }
    WEFT_TRY(copied, transplant.node(node.id(), inputs));
    for (std::size_t k = 0; k < node.result_count(); ++k)
      values[node.result(k).value] = made.result(copied, k);
  }
  for (const plan::Output& output : graph.outputs()) made.add_output(output, values[output.value.value]);
  return made;
}

Result<std::shared_ptr<const DecompositionCache::Open>> DecompositionCache::of(
    const std::vector<NodeId>& nodes) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = kept_.find(nodes); known != kept_.end()) return known->second;
  }
  WEFT_TRY(graph, decompose_nodes(graph_, nodes));
  auto open = std::make_shared<const Open>(std::move(graph));
  const std::lock_guard lock(mutex_);
  if (kept_.size() >= kMostKept) kept_.clear();
  kept_.emplace(nodes, open);
  return open;
}

}  // namespace weft::distribute
