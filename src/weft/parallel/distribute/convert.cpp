#include "weft/parallel/distribute/convert.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "weft/plan/ops/build.h"

namespace weft::distribute {
namespace {

using plan::AxisLayout;
using plan::Layout;
using plan::Mesh;

// A local slice is a copy at about memory bandwidth, cheaper than anything that goes over a link.
constexpr double kLocalBytesPerSecond = 1e12, kLocalSeconds = 1e-9;

double held_bytes(const plan::Type& type, const Layout& layout, const Mesh& mesh) {
  double bytes = static_cast<double>(type.bytes());
  for (std::size_t axis = 0; axis < layout.axes.size(); ++axis)
    if (layout.axes[axis].is_sliced()) bytes /= mesh.axes[axis].ranks;
  return bytes;
}

// The layouts that a conversion may pass through: a few numbered candidates per axis. A layout is a
// mixed-radix number.
class Ways {
 public:
  Ways(const plan::Type& type, const Mesh& mesh, std::span<const AxisCost> prices, const Layout& from,
       const Layout& to)
      : type_(type), mesh_(mesh), prices_(prices), goal_(to) {
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
      std::vector<AxisLayout>& choices = choices_.emplace_back();
      const auto offer = [&](const AxisLayout& layout) {
        if (std::ranges::find(choices, layout) == choices.end()) choices.push_back(layout);
      };
      offer(from.axes[axis]);
      offer(to.axes[axis]);
      if (to.axes[axis].has_borders()) offer(AxisLayout::sliced(to.axes[axis].index));
      offer(AxisLayout::replicated());
      if (from.axes[axis].is_partial() && !prices[axis].in_time)
        if (const Symbol along = scatter_index(from, to, axis); along.valid())
          offer(AxisLayout::sliced(along));
      weights_.push_back(count_);
      count_ *= choices.size();
    }
  }

  Conversion cheapest(const Layout& from, const Layout& to) const {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    struct Reached {
      double seconds = std::numeric_limits<double>::infinity();
      std::size_t before = 0;
      Step step;
    };
    std::vector<Reached> reached(count_);
    const std::size_t start = number(from), goal = number(to);
    reached[start].seconds = 0;
    using Entry = std::pair<double, std::size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
    next.emplace(0, start);
    while (!next.empty()) {
      const auto [seconds, at] = next.top();
      next.pop();
      if (seconds > reached[at].seconds) continue;
      if (at == goal) break;
      const Layout here = layout(at);
      for (std::size_t axis = 0; axis < choices_.size(); ++axis)
        for (std::size_t choice = 0; choice < choices_[axis].size(); ++choice) {
          const Step step{axis, here.axes[axis], choices_[axis][choice]};
          if (!is_legal(here, step)) continue;
          const std::size_t there =
              at + weights_[axis] * choice - weights_[axis] * (at / weights_[axis] % choices_[axis].size());
          const double total = seconds + price(here, step);
          if (total >= reached[there].seconds) continue;
          reached[there] = {total, at, step};
          next.emplace(total, there);
        }
    }
    Conversion found{{}, reached[goal].seconds};
    if (found.seconds == kFar) return {{}, -1};
    for (std::size_t at = goal; at != start; at = reached[at].before) found.steps.push_back(reached[at].step);
    std::ranges::reverse(found.steps);
    return found;
  }

 private:
  // The index along which partial sums may be reduce-scattered on the way: the largest that nothing
  // else slices.
  Symbol scatter_index(const Layout& from, const Layout& to, std::size_t axis) const {
    const std::int64_t ranks = mesh_.axes[axis].ranks;
    const plan::Dim* best = nullptr;
    const auto rank_of = [&](const plan::Dim& dim) { return std::pair(dim.size % ranks == 0, dim.size); };
    for (const plan::Dim& dim : type_.dims) {
      const auto cuts = [&](const AxisLayout& layout) {
        return layout.is_sliced() && layout.index == dim.index;
      };
      if (dim.size < ranks || std::ranges::any_of(from.axes, cuts) || std::ranges::any_of(to.axes, cuts))
        continue;
      if (best == nullptr || rank_of(dim) > rank_of(*best)) best = &dim;
    }
    return best == nullptr ? Symbol() : best->index;
  }

  std::size_t number(const Layout& layout) const {
    std::size_t number = 0;
    for (std::size_t axis = 0; axis < choices_.size(); ++axis)
      number +=
          weights_[axis] * static_cast<std::size_t>(std::ranges::find(choices_[axis], layout.axes[axis]) -
                                                    choices_[axis].begin());
    return number;
  }

  Layout layout(std::size_t number) const {
    Layout layout;
    for (std::size_t axis = 0; axis < choices_.size(); ++axis)
      layout.axes.push_back(choices_[axis][number / weights_[axis] % choices_[axis].size()]);
    return layout;
  }

  bool is_legal(const Layout& here, const Step& step) const {
    if (step.from == step.to || step.from.is_varying() || !(step.to.is_sliced() || step.to.is_replicated()))
      return false;
    if (step.from.has_borders() || (step.to.has_borders() && step.from != AxisLayout::sliced(step.to.index)))
      return false;
    for (std::size_t other = 0; other < here.axes.size(); ++other) {
      const AxisLayout& there = here.axes[other];
      if (other == step.axis) continue;
      if (prices_[other].in_time && there.is_partial() && !goal_.axes[other].is_partial()) return false;
      if (step.to.has_borders() && there.slices(step.to.index)) return false;
      if (step.from.is_partial() && there.is_partial() && there.monoid != step.from.monoid) return false;
      if (other > step.axis && there.is_sliced() &&
          ((step.from.is_sliced() && there.index == step.from.index) ||
           (step.to.is_sliced() && there.index == step.to.index)))
        return false;
    }
    return true;
  }

  double price(const Layout& here, const Step& step) const {
    const double ranks = mesh_.axes[step.axis].ranks;
    double bytes = held_bytes(type_, here, mesh_);
    if (step.from.is_replicated()) return kLocalSeconds + bytes / ranks / kLocalBytesPerSecond;
    const AxisCost& price = prices_[step.axis];
    if (step.to.has_borders()) {
      const double whole = static_cast<double>(type_.size_of(step.to.index));
      return std::max(price.latency_seconds, kLocalSeconds) +
             bytes * ranks * (step.to.before + step.to.after) / whole / std::max(price.bytes_per_second, 1.0);
    }
    // Each half of an all-reduce moves as much as a reduce-scatter or an all-gather.
    const double halves = step.from.is_partial() && step.to.is_replicated() ? 2 : 1;
    if (step.gathers()) bytes *= ranks;
    const double passed = halves * bytes * (ranks - 1) / ranks;
    return std::max(price.latency_seconds, kLocalSeconds) + passed / std::max(price.bytes_per_second, 1.0);
  }

  const plan::Type& type_;
  const Mesh& mesh_;
  std::span<const AxisCost> prices_;
  const Layout& goal_;
  std::vector<std::vector<AxisLayout>> choices_;
  std::vector<std::size_t> weights_;
  std::size_t count_ = 1;
};

// Two words that identify a layout.
void pack(const AxisLayout& layout, std::vector<std::uint64_t>& words) {
  words.push_back(static_cast<std::uint64_t>(layout.index.value) << 16 |
                  static_cast<std::uint64_t>(layout.kind) << 8 | static_cast<std::uint64_t>(layout.monoid));
  words.push_back(static_cast<std::uint64_t>(layout.before) << 16 | layout.after);
}

}  // namespace

Converter::Converter(const Mesh& mesh, std::span<const AxisCost> prices)
    : mesh_(mesh), prices_(prices.begin(), prices.end()) {
  WEFT_CHECK(mesh.axes.size() <= kMostAxes);
  prices_.resize(mesh.axes.size());
}

const Conversion* Converter::find(plan::TypeId id, const plan::Type& type, const Layout& from,
                                  const Layout& to) {
  std::vector<std::uint64_t> words;
  for (const AxisLayout& axis : from.axes) pack(axis, words);
  for (const AxisLayout& axis : to.axes) pack(axis, words);
  const auto [found, fresh] = known_.try_emplace({id.value, std::move(words)});
  if (fresh) found->second = Ways(type, mesh_, prices_, from, to).cheapest(from, to);
  return found->second.seconds < 0 ? nullptr : &found->second;
}

Result<plan::ValueId> add_step(plan::Graph& graph, plan::ValueId value, const Mesh& mesh, const Step& step) {
  const std::string_view axis = mesh.axes[step.axis].name;
  if (step.from.is_partial()) {
    const std::string_view kind = name(step.from.monoid);
    return step.to.is_sliced() ? ops::add_reduce_scatter(graph, value, axis, step.to.index, kind)
                               : ops::add_all_reduce(graph, value, axis, kind);
  }
  if (step.from.is_replicated()) return ops::add_slice_across(graph, value, axis, step.to.index);
  if (step.to.has_borders())
    return ops::add_halo(graph, value, axis, step.to.index, step.to.before, step.to.after);
  return step.to.is_sliced() ? ops::add_all_to_all(graph, value, axis, step.from.index, step.to.index)
                             : ops::add_all_gather(graph, value, axis, step.from.index);
}

}  // namespace weft::distribute
