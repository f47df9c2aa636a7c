#include "weft/planner/search/distribution/plan_lower_bounds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/convolution.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/grouping.h"
#include "weft/program/tasks/place.h"

namespace weft::search {
namespace {

using plan::Layout;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

using Kind = program::Exchange::Kind;

class PlanBounds {
 public:
  PlanBounds(const distribute::DistributedPlan& plan, const PeakRates& machine,
             const std::vector<bool>& counts)
      : plan_(plan),
        machine_(machine),
        counts_(counts),
        axis_seconds_(plan.mesh.axes.size()),
        wire_seconds_(plan.mesh.axes.size()),
        ready_(plan.graph.value_count()),
        by_rows_(plan.graph.value_count(), true) {
    for (const plan::MeshAxis& axis : plan.mesh.axes) ranks_.push_back(static_cast<double>(axis.ranks));
  }

  double seconds() {
    double most = 0;
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(NodeId(n));
      if (node.input_count() == 0) continue;
      const Unit unit = is_counted(NodeId(n)) ? unit_of(node) : Unit::none;
      double when = 0;
      for (const ValueId input : node.node().inputs) {
        // A rowwise node may be fused with the rowwise nodes that made its operand, but not with a
        // product.
        const bool begins = unit == Unit::rows && !by_rows_[input.value] && machine_.rate;
        when = std::max(when, ready_[input.value] + (begins ? machine_.launch_seconds : 0));
      }
      if (unit == Unit::exchange)
        when += move(node, *ops::find_communication(node.op()));
      else if (unit == Unit::own || unit == Unit::rows)
        when += compute(node, unit);
      // A view counts with the node that made its operand, an uncounted node with its readers.
      const bool rows =
          unit == Unit::view ? by_rows_[node.input(0).value] : unit != Unit::own && unit != Unit::exchange;
      for (std::size_t k = 0; k < node.result_count(); ++k) {
        ready_[node.result(k).value] = when;
        by_rows_[node.result(k).value] = rows;
      }
      most = std::max(most, when);
    }
    for (const std::vector<double>* streams : {&axis_seconds_, &wire_seconds_})
      for (const double seconds : *streams) most = std::max(most, seconds);
    return std::max(most, compute_seconds_);
  }

  double bytes() const {
    // Bits by phase: forward, backward. Reads by updates do not matter.
    constexpr std::uint8_t kReads[] = {1, 2, 0}, kForwardAndBackward = 3;
    const plan::Graph& graph = plan_.graph;
    std::vector<std::uint8_t> read(graph.value_count());
    // Backwards, since reading a view reads its operand.
    for (std::size_t n = graph.node_count(); n-- > 0;) {
      const NodeView node = graph.view(NodeId(n));
      const std::uint8_t reads = kReads[static_cast<std::size_t>(node.phase())];
      const bool view = program::is_placed_view(node.op());
      for (const ValueId input : node.node().inputs)
        read[input.value] |= view ? read[node.result(0).value] : reads;
    }
    double sum = 0;
    for (std::size_t v = 0; v < graph.value_count(); ++v) {
      const NodeView node = graph.view(graph.value(ValueId(v)).producer);
      const bool kept =
          ops::is_source(node.op()) ||
          (read[v] == kForwardAndBackward && node.phase() == plan::Phase::forward && is_product(node));
      if (kept && is_counted(node.id())) sum += bytes_of(ValueId(v));
    }
    return sum;
  }

 private:
  bool is_counted(NodeId node) const { return counts_.empty() || counts_[node.value]; }
  const Layout& layout(ValueId value) const { return plan_.layouts[value.value]; }

  // Per rank.
  double bytes_of(ValueId value) const {
    double bytes = static_cast<double>(plan_.graph.type(value).bytes());
    for (std::size_t axis = 0; axis < ranks_.size(); ++axis)
      if (layout(value).axes[axis].is_sliced()) bytes /= ranks_[axis];
    return bytes;
  }

  // How a node runs: by itself, or fused with others (program/tasks/grouping.h).
  enum class Unit : std::uint8_t { none, view, rows, own, exchange };

  static bool is_attention(const plan::Operator& op) {
    return &op == &ops::attention() || &op == &ops::attention_gradient();
  }

  static bool is_linear_loss(const plan::Operator& op) { return &op == &ops::linear_cross_entropy(); }

  static Unit unit_of(const NodeView& node) {
    if (ops::find_communication(node.op()) != nullptr) return Unit::exchange;
    if (program::is_placed_view(node.op())) return Unit::view;
    const bool is_own = is_product(node) || ops::is_convolution(node.op()) || is_attention(node.op()) ||
                        is_linear_loss(node.op());
    return is_own ? Unit::own : Unit::rows;
  }

  // Bytes of operands in memory. Views are not counted: they may read less, or the same repeatedly.
  double read_bytes(const NodeView& node, bool sources_only) const {
    double sum = 0;
    for (const ValueId input : node.node().inputs) {
      const NodeView from = plan_.graph.view(plan_.graph.value(input).producer);
      if (ops::is_source(from.op()) ||
          (!sources_only && from.input_count() > 0 && !program::is_placed_view(from.op())))
        sum += bytes_of(input);
    }
    return sum;
  }

  double written_bytes(const NodeView& node) const {
    double sum = 0;
    for (std::size_t k = 0; k < node.result_count(); ++k) sum += bytes_of(node.result(k));
    return sum;
  }

  // A matrix product, which runs by itself: each operand has an index that the other lacks.
  static bool is_product(const NodeView& node) {
    if (&node.op() != &ops::contract() || node.input_count() != 2) return false;
    const plan::Type a = node.input_type(0), b = node.input_type(1), to = node.result_type(0);
    const auto has_own = [&](const plan::Type& one, const plan::Type& other) {
      return std::ranges::any_of(
          one.dims, [&](const plan::Dim& dim) { return !other.has(dim.index) && to.has(dim.index); });
    };
    return has_own(a, b) && has_own(b, a);
  }

  double compute(const NodeView& node, Unit unit) {
    if (!machine_.rate || node.input_count() < 2) return 0;
    const double memory = machine_.bytes_per_second;
    if (program::is_optimizer(node.op())) {
      if (memory > 0) compute_seconds_ += (read_bytes(node, true) + written_bytes(node)) / memory;
      return 0;
    }
    const plan::Work work = node.op().work(node);
    if (!(work.multiply_adds > 0)) return 0;
    const double rate =
        std::max(machine_.rate(node.result_type(0).dtype), machine_.rate(node.input_type(0).dtype));
    if (!(rate > 0)) return 0;
    double parts = 1;
    for (std::size_t axis = 0; axis < ranks_.size(); ++axis) {
      bool cut = false;
      for (const ValueId value : node.node().inputs) cut |= layout(value).axes[axis].is_sliced();
      for (std::size_t k = 0; k < node.result_count(); ++k)
        cut |= layout(node.result(k)).axes[axis].is_sliced();
      if (cut) parts *= ranks_[axis];
    }
    double seconds = 2 * work.multiply_adds / parts / rate;
    if (ops::is_convolution(node.op())) seconds /= machine_.convolution_rate;
    if (unit == Unit::own) {
      if (memory > 0) seconds = std::max(seconds, (read_bytes(node, false) + written_bytes(node)) / memory);
      seconds += machine_.launch_seconds;
    }
    compute_seconds_ += seconds;
    return seconds;
  }

  double move(const NodeView& node, const ops::Communication& communication) {
    if (machine_.costs == nullptr) return 0;
    const std::optional<Kind> kind = ops::collective_of(communication.exchange(node));
    const int found = plan_.mesh.find(communication.axis(node));
    if (!kind || found < 0) return 0;
    const auto axis = static_cast<std::size_t>(found);
    double bytes = 0;
    for (std::size_t k = 0; k < node.input_count(); ++k)
      bytes += bytes_of(*kind == Kind::all_gather ? node.result(k) : node.input(k));
    const cost::ExchangeCost& price = price_of(*kind, axis, static_cast<std::int64_t>(bytes));
    axis_seconds_[axis] += price.seconds();
    wire_seconds_[wire(axis)] += price.transfer_seconds;
    return price.seconds();
  }

  // Cached, since layers repeat the same exchanges.
  const cost::ExchangeCost& price_of(Kind kind, std::size_t axis, std::int64_t bytes) {
    const auto [at, is_new] = prices_.try_emplace({kind, axis, bytes});
    if (is_new) {
      program::Exchange exchange;
      exchange.kind = kind;
      at->second = machine_.costs->exchange(exchange, axis, bytes);
    }
    return at->second;
  }

  // The first mesh axis that uses the same links.
  std::size_t wire(std::size_t axis) const {
    const std::vector<std::int32_t>& wires = machine_.costs->wires;
    if (wires.empty()) return axis;
    return static_cast<std::size_t>(std::ranges::find(wires, wires[axis]) - wires.begin());
  }

  const distribute::DistributedPlan& plan_;
  const PeakRates& machine_;
  const std::vector<bool>& counts_;
  std::map<std::tuple<Kind, std::size_t, std::int64_t>, cost::ExchangeCost> prices_;
  std::vector<double> ranks_;  // by axis, like the next two
  std::vector<double> axis_seconds_, wire_seconds_;
  std::vector<double> ready_;  // by value, like the next
  std::vector<bool> by_rows_;  // made by nodes that a reader may be fused with
  double compute_seconds_ = 0;
};

}  // namespace

Least plan_lower_bounds(const distribute::DistributedPlan& plan, const PeakRates& machine,
                        const std::vector<bool>& counts) {
  PlanBounds floors(plan, machine, counts);
  return {floors.seconds(), floors.bytes()};
}

}  // namespace weft::search
