#include "weft/parallel/distribute/choose_loops.h"

#include <algorithm>

#include "weft/parallel/distribute/withdraw_slices.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/sliding.h"

namespace weft::distribute {
namespace {

using plan::Loop;
using plan::NodeId;
using plan::NodeView;

std::int64_t ceil_div(std::int64_t size, std::int64_t parts) { return size / parts + (size % parts != 0); }

// Chooses the loops of one node, from the outermost mesh axis inward.
class NodeChooser {
 public:
  NodeChooser(const NodeView& node, const plan::Signature& signature, const plan::Mesh& mesh)
      : node_(node), signature_(signature), mesh_(mesh), sliding_(ops::sliding_loops(node)) {
    for (const Loop& loop : signature.loops) left_.push_back(loop.size);
    cuts_.assign(signature.loops.size(), std::vector<bool>(mesh.axes.size()));
  }

  LoopChoice by_list(std::size_t axis, std::span<const Symbol> list) {
    bool made_here = false;
    for (const Symbol index : list)
      for (std::size_t l = 0; l < signature_.loops.size(); ++l) {
        const Loop& loop = signature_.loops[l];
        if (loop.role == plan::Role::whole || !bears(node_, loop, index)) continue;
        if (left_[l] < mesh_.axes[axis].ranks) continue;
        if (!has_operand(loop)) {
          made_here = true;
          continue;
        }
        // Only the result has this index: every rank can compute all of it and readers slice it,
        // but that needs whole operands. Slicing another index would mean moving the result.
        if (made_here && (loop.role == plan::Role::reduced || grows_by(mesh_.axes[axis].ranks)))
          return kWhole;
        if (cut(l, axis)) return static_cast<LoopChoice>(l);
      }
    return made_here ? kWhole : kUnlisted;
  }

  LoopChoice by_exception(std::size_t axis, Symbol index) {
    for (std::size_t l = 0; l < signature_.loops.size(); ++l) {
      const Loop& loop = signature_.loops[l];
      if (loop.role != plan::Role::whole && has_operand(loop) && bears(node_, loop, index) && cut(l, axis))
        return static_cast<LoopChoice>(l);
    }
    return kWhole;
  }

 private:
  bool grows_by(std::int64_t times) const {
    double operands = 0, results = 0;
    for (std::size_t i = 0; i < node_.input_count(); ++i)
      operands += static_cast<double>(node_.input_type(i).bytes());
    for (std::size_t k = 0; k < node_.result_count(); ++k)
      results += static_cast<double>(node_.result_type(k).bytes());
    return results > operands * static_cast<double>(times);
  }

  bool can_slide(std::size_t l, std::size_t axis) const {
    const auto sliding = std::ranges::find(sliding_, l, &ops::Sliding::loop);
    if (sliding == sliding_.end()) return true;
    if (std::ranges::find(cuts_[l], true) != cuts_[l].end()) return false;
    for (std::size_t i = 0; i < node_.input_count(); ++i) {
      const int dim = signature_.loops[l].operands[i];
      if (dim < 0) continue;
      const std::int32_t ranks = mesh_.axes[axis].ranks;
      const std::int64_t size = node_.input_type(i).dims[static_cast<std::size_t>(dim)].size;
      const ops::Borders borders = sliding->borders(i, ranks);
      if (std::max(borders.before, borders.after) > std::min(ceil_div(size, ranks), plan::kMaxBorder))
        return false;
    }
    return true;
  }

  bool cut(std::size_t l, std::size_t axis) {
    if (!can_slide(l, axis)) return false;
    cuts_[l][axis] = true;
    if (node_.op().is_view() && !blocks_agree(node_, signature_.loops[l], mesh_, cuts_[l])) {
      cuts_[l][axis] = false;
      return false;
    }
    left_[l] = ceil_div(left_[l], mesh_.axes[axis].ranks);
    return true;
  }

  const NodeView node_;
  const plan::Signature& signature_;
  const plan::Mesh& mesh_;
  const std::vector<ops::Sliding> sliding_;
  std::vector<std::int64_t> left_;       // by loop: iterations per rank after the slices so far
  std::vector<std::vector<bool>> cuts_;  // by loop and axis
};

}  // namespace

bool blocks_agree(const NodeView& view, const Loop& loop, const plan::Mesh& mesh,
                  const std::vector<bool>& cut) {
  if (loop.operands[0] < 0 || loop.results[0] < 0) return true;
  std::int64_t operand = view.input_type(0).dims[static_cast<std::size_t>(loop.operands[0])].size;
  std::int64_t result = view.result_type(0).dims[static_cast<std::size_t>(loop.results[0])].size;
  if (operand == result) return true;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (!cut[axis]) continue;
    // Even blocks on the coarser side are even on the finer side. Uneven ones may agree too, but
    // that is harder.
    if (operand % mesh.axes[axis].ranks != 0 || result % mesh.axes[axis].ranks != 0) return false;
    operand /= mesh.axes[axis].ranks;
    result /= mesh.axes[axis].ranks;
  }
  return true;
}

std::vector<LoopChoice> loops_of(const NodeView& node, const plan::Signature& signature,
                                 const plan::Mesh& mesh, std::span<const IndexList> lists,
                                 const Exceptions& exceptions) {
  NodeChooser chooser(node, signature, mesh);
  std::vector<LoopChoice> chosen;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    const Symbol* said = exceptions.find(node.id(), axis);
    chosen.push_back(mesh.axes[axis].ranks == 1 ? kWhole
                     : said == nullptr          ? chooser.by_list(axis, lists[axis])
                     : said->valid()            ? chooser.by_exception(axis, *said)
                                                : kWhole);
  }
  return chosen;
}

LoopChoices choose_loops(const plan::Graph& graph, const Signatures& signatures, const plan::Mesh& mesh,
                         const StageUses& uses, const Exceptions& exceptions) {
  const std::size_t axes = mesh.axes.size();
  LoopChoices choices(graph.node_count(), axes);
  std::vector<bool> made_of_constants(graph.value_count());  // computed only from constants and positions
  std::vector<std::vector<LoopChoice>> by_kind(signatures.kinds() * uses.count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (ops::is_source(node.op())) continue;
    const plan::Signature& signature = signatures.of(node.id());
    const bool of_nothing = std::ranges::all_of(
        node.node().inputs, [&](plan::ValueId input) { return made_of_constants[input.value]; });
    for (std::size_t k = 0; k < node.result_count(); ++k)
      made_of_constants[node.result(k).value] = of_nothing;
    bool excepted = false;
    for (std::size_t axis = 0; axis < axes; ++axis) excepted |= exceptions.find(node.id(), axis) != nullptr;
    const std::span<const IndexList> lists = uses.lists(node.id());
    std::vector<LoopChoice>& known =
        by_kind[signatures.kind(node.id()) * uses.count() + uses.number(node.id())];
    std::vector<LoopChoice> own;
    if (excepted)
      own = loops_of(node, signature, mesh, lists, exceptions);
    else if (known.empty())
      known = loops_of(node, signature, mesh, lists, exceptions);
    for (std::size_t axis = 0; axis < axes; ++axis)
      choices.set(node.id(), axis, (excepted ? own : known)[axis]);
    // A value that every rank can compute by itself is never moved; its readers slice it locally.
    if (of_nothing && !excepted)
      for (std::size_t axis = 0; axis < axes; ++axis) choices.set(node.id(), axis, kWhole);
  }
  withdraw_slices(graph, signatures, mesh, uses, exceptions, choices);
  return choices;
}

}  // namespace weft::distribute
