#include "weft/search/least_of_plan.h"

#include <algorithm>

#include "weft/ops/communication.h"

namespace weft::search {
namespace {

using plan::AxisLayout;
using plan::Layout;
using plan::NodeView;

constexpr double kFasterThanStated = 1.25;

class Streams {
 public:
  Streams(const distribute::DistributedPlan& plan, const std::function<double(plan::DType)>& peak,
          std::span<const distribute::AxisPrice> prices)
      : plan_(plan), peak_(peak), prices_(prices), axis_seconds_(plan.mesh.axes.size()) {}

  double busiest() {
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(plan::NodeId(n));
      if (node.input_count() == 0) continue;
      if (ops::find_communication(node.op()) != nullptr)
        move(node);
      else
        compute(node);
    }
    double most = compute_seconds_;
    for (const double seconds : axis_seconds_) most = std::max(most, seconds);
    return most;
  }

 private:
  const Layout& layout(plan::ValueId value) const { return plan_.layouts[value.value]; }
  double ranks(std::size_t axis) const { return static_cast<double>(plan_.mesh.axes[axis].ranks); }

  void compute(const NodeView& node) {
    if (!peak_) return;
    const double rate = peak_(node.result_type(0).dtype);
    if (!(rate > 0)) return;
    double parts = 1;
    for (std::size_t axis = 0; axis < axis_seconds_.size(); ++axis) {
      bool cut = false;
      for (const plan::ValueId value : node.node().inputs) cut |= layout(value).axes[axis].is_sliced();
      for (std::size_t k = 0; k < node.result_count(); ++k)
        cut |= layout(node.result(k)).axes[axis].is_sliced();
      if (cut) parts *= ranks(axis);
    }
    compute_seconds_ += node.op().work(node).flops / parts / rate;
  }

  // What a rank of `axis` must send for the layout to change as it does there.
  static double shares(const AxisLayout& from, const AxisLayout& to) {
    if (from == to || from.is_replicated() || from.is_varying() || to.is_varying()) return 0;
    return from.is_partial() && to.is_replicated() ? 2 : 1;
  }

  void move(const NodeView& node) {
    if (prices_.empty() || node.input_count() != 1 || node.result_count() != 1) return;
    const Layout &from = layout(node.input(0)), &to = layout(node.result(0));
    for (std::size_t axis = 0; axis < axis_seconds_.size(); ++axis) {
      const double times = shares(from.axes[axis], to.axes[axis]);
      if (times == 0) continue;
      double bytes = static_cast<double>(node.input_type(0).bytes());
      for (std::size_t other = 0; other < axis_seconds_.size(); ++other)
        if (other != axis && (from.axes[other].is_sliced() || to.axes[other].is_sliced()))
          bytes /= ranks(other);
      // From slices to other slices each rank sends of its own block only.
      if (from.axes[axis].is_sliced() && to.axes[axis].is_sliced()) bytes /= ranks(axis);
      // Borders move less than a block; how much does not matter here.
      if (from.axes[axis].is_sliced() && to.axes[axis].is_sliced() &&
          from.axes[axis].index == to.axes[axis].index)
        continue;
      axis_seconds_[axis] +=
          times * bytes * (1 - 1 / ranks(axis)) / (prices_[axis].bytes_per_second * kFasterThanStated);
    }
  }

  const distribute::DistributedPlan& plan_;
  const std::function<double(plan::DType)>& peak_;
  std::span<const distribute::AxisPrice> prices_;
  std::vector<double> axis_seconds_;
  double compute_seconds_ = 0;
};

}  // namespace

double least_of_plan(const distribute::DistributedPlan& plan, const std::function<double(plan::DType)>& peak,
                     std::span<const distribute::AxisPrice> prices) {
  return Streams(plan, peak, prices).busiest();
}

}  // namespace weft::search
