#include "weft/program/tasks/masked_regions.h"

#include <cmath>
#include <unordered_map>

#include "weft/plan/ops/operators.h"
#include "weft/plan/ops/pointwise.h"

namespace weft::program {
namespace {

using plan::NodeId;
using plan::NodeView;
using plan::ValueId;
using MaybeRegion = std::optional<Region>;

// Kernels compare positions as floats, which are exact only up to here.
constexpr std::int64_t kFurthest = std::int64_t{1} << 24;

// Positions along an index, counted from `first`.
struct Positions {
  Symbol index;
  std::int64_t first = 0, size = 0;
};

// Where a boolean is known.
struct Truth {
  MaybeRegion when_true, when_false;
};

// The region where x > y + extra.
Region where_more(const Positions& x, const Positions& y, std::int64_t extra) {
  return {x.index, y.index, y.first - x.first + extra};
}

MaybeRegion either(const MaybeRegion& x, const MaybeRegion& y) { return x ? x : y; }

MaybeRegion if_within(const MaybeRegion& region, const plan::Type& type) {
  return region && type.has(region->later) && type.has(region->earlier) ? region : std::nullopt;
}

// A renamed value has the same dims in the same order.
MaybeRegion renamed(const MaybeRegion& region, const plan::Type& from, const plan::Type& to) {
  if (!if_within(region, from)) return std::nullopt;
  const auto name = [&](Symbol index) {
    return to.dims[static_cast<std::size_t>(from.position(index))].index;
  };
  return Region{name(region->later), name(region->earlier), region->offset};
}

class Finder {
 public:
  Finder(const plan::Graph& graph, const std::vector<bool>& needed) : graph_(graph), needed_(needed) {
    found_.zero.resize(graph.value_count());
    found_.unread.resize(graph.value_count());
  }

  MaskedRegions run() {
    for (std::size_t n = 0; n < graph_.node_count(); ++n)
      if (needed_[n]) go_forward(graph_.view(NodeId(n)));
    if (!truths_.empty()) find_unread();
    return std::move(found_);
  }

 private:
  // -- zero regions -------------------------------------------------------------------------------

  void go_forward(const NodeView& node) {
    const plan::Operator* op = &node.op();
    if (op == &ops::position()) {
      note(node, {node.symbol(0), node.integer(2), node.integer(1)});
    } else if (truths_.empty() && positions_.empty()) {
      return;  // nothing to propagate, as in most plans
    } else if (op == &ops::add() || op == &ops::sub()) {
      shift(node);
    } else if (const MaybeTruth truth = truth_of(node)) {
      truths_.emplace(node.result(0).value, *truth);
    } else if (const MaybeRegion zero = zero_of(node)) {
      found_.zero[node.result(0).value] = zero;
    }
  }

  // Positions plus or minus an integer are positions.
  void shift(const NodeView& node) {
    const bool adds = &node.op() == &ops::add();
    for (const std::size_t i : {0, 1}) {
      const auto at = positions_.find(node.input(i).value);
      const std::optional<double> by = number(node.input(1 - i));
      if (at == positions_.end() || !by || (!adds && i == 1)) continue;
      if (std::abs(*by) > kFurthest || *by != std::floor(*by)) return;
      Positions moved = at->second;
      moved.first += static_cast<std::int64_t>(adds ? *by : -*by);
      return note(node, moved);
    }
  }

  void note(const NodeView& node, const Positions& positions) {
    if (positions.first >= -kFurthest && positions.first <= kFurthest - positions.size)
      positions_.emplace(node.result(0).value, positions);
  }

  using MaybeTruth = std::optional<Truth>;

  MaybeTruth truth_of(const NodeView& node) const {
    const plan::Operator* op = &node.op();
    const bool less = op == &ops::less() || op == &ops::greater();
    if (less || op == &ops::less_equal() || op == &ops::greater_equal()) {
      const auto a = positions_.find(node.input(0).value), b = positions_.find(node.input(1).value);
      if (a == positions_.end() || b == positions_.end() || a->second.index == b->second.index)
        return std::nullopt;
      const bool swapped = op == &ops::greater() || op == &ops::greater_equal();
      const Positions &x = (swapped ? b : a)->second, &y = (swapped ? a : b)->second;
      return less ? Truth{where_more(y, x, 0), where_more(x, y, -1)}
                  : Truth{where_more(y, x, -1), where_more(x, y, 0)};
    }
    const auto operand = [&](std::size_t i) {
      const auto found = truths_.find(node.input(i).value);
      return found == truths_.end() ? Truth{} : found->second;
    };
    Truth truth;
    if (op == &ops::logical_not())
      truth = {operand(0).when_false, operand(0).when_true};
    else if (op == &ops::logical_and())
      truth = {both(operand(0).when_true, operand(1).when_true),
               either(operand(0).when_false, operand(1).when_false)};
    else if (op == &ops::logical_or())
      truth = {either(operand(0).when_true, operand(1).when_true),
               both(operand(0).when_false, operand(1).when_false)};
    if (!truth.when_true && !truth.when_false) return std::nullopt;
    return truth;
  }

  MaybeRegion zero_of(const NodeView& node) const {
    const plan::Operator* op = &node.op();
    if (op == &ops::select()) return filled(node, 0);
    if (op == &ops::softmax()) {
      const NodeView masked = graph_.view(graph_.value(node.input(0)).producer);
      return &masked.op() == &ops::select() ? filled(masked, -INFINITY) : std::nullopt;
    }
    if (op == &ops::mul()) {
      const MaybeRegion &a = found_.zero[node.input(0).value], &b = found_.zero[node.input(1).value];
      if (a && (b || is_finite(node.input(1)))) return a;
      return b && is_finite(node.input(0)) ? b : std::nullopt;
    }
    if (op == &ops::div()) {
      const bool keeps = is_finite(node.input(1)) && number(node.input(1)) != 0.0;
      return keeps ? found_.zero[node.input(0).value] : std::nullopt;
    }
    if (op == &ops::rename())
      return renamed(found_.zero[node.input(0).value], node.input_type(0), node.result_type(0));
    if (op == &ops::transpose() || op == &ops::broadcast() || op == &ops::neg())
      return found_.zero[node.input(0).value];
    return std::nullopt;
  }

  // The region where a select yields that number.
  MaybeRegion filled(const NodeView& select, double with) const {
    if (number(select.input(2)) == with) return dropped_by(select, 1);
    if (number(select.input(1)) == with) return dropped_by(select, 2);
    return std::nullopt;
  }

  // The region where a select does not yield that operand.
  MaybeRegion dropped_by(const NodeView& select, std::size_t operand) const {
    const auto truth = truths_.find(select.input(0).value);
    if (truth == truths_.end()) return std::nullopt;
    return operand == 1 ? truth->second.when_false : truth->second.when_true;
  }

  std::optional<double> number(ValueId value) const {
    const NodeView node = graph_.view(graph_.value(value).producer);
    if (&node.op() != &ops::constant()) return std::nullopt;
    return node.real(0);
  }

  bool is_finite(ValueId value) const { return std::isfinite(number(value).value_or(INFINITY)); }

  // -- unread regions -----------------------------------------------------------------------------

  void find_unread() {
    std::vector<bool> seen(graph_.value_count());  // has a reader: `unread` is the intersection so far
    for (const plan::Output& output : graph_.outputs()) seen[output.value.value] = true;
    for (std::size_t n = graph_.node_count(); n-- > 0;) {
      if (!needed_[n]) continue;
      const NodeView node = graph_.view(NodeId(n));
      for (std::size_t i = 0; i < node.input_count(); ++i) {
        const std::size_t value = node.input(i).value;
        const MaybeRegion here = if_within(unread_by(node, i), node.input_type(i));
        found_.unread[value] = seen[value] ? both(found_.unread[value], here) : here;
        seen[value] = true;
      }
    }
  }

  MaybeRegion unread_by(const NodeView& node, std::size_t i) const {
    const plan::Operator* op = &node.op();
    const bool is_product = op == &ops::contract() && node.input_count() == 2;
    if (op == &ops::mul() || is_product) {
      const MaybeRegion zero = if_within(found_.zero[node.input(1 - i).value], node.input_type(i));
      if (zero || is_product) return zero;
    }
    if (op == &ops::select() && i > 0)
      if (const MaybeRegion dropped = if_within(dropped_by(node, i), node.input_type(i))) return dropped;
    if (op == &ops::rename())
      return renamed(found_.unread[node.result(0).value], node.result_type(0), node.input_type(0));
    if (ops::is_pointwise(*op) || op == &ops::transpose() || op == &ops::broadcast())
      return found_.unread[node.result(0).value];
    return std::nullopt;
  }

  const plan::Graph& graph_;
  const std::vector<bool>& needed_;
  std::unordered_map<std::uint32_t, Positions> positions_;  // by value
  std::unordered_map<std::uint32_t, Truth> truths_;
  MaskedRegions found_;
};

}  // namespace

MaybeRegion MaskedRegions::of_product(const NodeView& contraction) const {
  for (const ValueId operand : contraction.node().inputs)
    if (zero[operand.value]) return zero[operand.value];
  return unread[contraction.result(0).value];
}

MaskedRegions find_masked_regions(const plan::Graph& graph, const std::vector<bool>& needed) {
  return Finder(graph, needed).run();
}

}  // namespace weft::program
