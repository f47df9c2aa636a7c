#include "weft/program/memory/recompute_least.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "weft/base/check.h"
#include "weft/program/memory/recompute_blocks.h"
#include "weft/program/memory/recompute_states.h"

namespace weft::memory {
namespace {

using Kind = RecomputeStep::Kind;
constexpr std::size_t kMostLeastBlocks = 600;  // cubic time: tenths of a second
constexpr std::int64_t kNoMemory = std::numeric_limits<std::int64_t>::max();

// The recursion of recompute_chain.h for memory instead of time: one number per range of blocks.
class LeastChain {
 public:
  // `drops_bases`: whether the base of a block may be dropped during its B and recomputed by
  // another advance.
  LeastChain(const RecomputeGraph& graph, std::span<const std::pair<std::size_t, std::size_t>> bounds,
             bool drops_bases)
      : graph_(graph), bounds_(bounds), count_(bounds.size()), drops_bases_(drops_bases) {
    for (std::size_t b = 0; b < count_; ++b) blocks_.push_back(block_of(graph, b));
    cold_.assign((count_ + 1) * (count_ + 1), kNoMemory);
    warm_ = cold_;
    for (std::size_t length = 1; length <= count_; ++length)
      for (std::size_t i = 0; i + length <= count_; ++i) fill(i, i + length);
  }

  LeastMemory result() {
    LeastMemory least{cold_[at(0, count_)], false, {}};
    emit(0, count_, least.bytes, false);
    least.steps = std::move(steps_);
    return least;
  }

 private:
  struct Way {
    std::uint32_t kept = 0;
    std::int64_t bytes = 0, peak = 0, after = 0;  // `after`: least memory for all B from there
  };
  struct LeastBlock {
    RecomputeModel model;
    std::vector<Way> ways;
    std::int64_t cold = 0, peak_first = 0, peak_next = 0;

    std::int64_t end_size() const { return model.size.back(); }
  };

  LeastBlock block_of(const RecomputeGraph& graph, std::size_t b) const {
    const auto [begin, end] = bounds_[b];
    const std::int64_t base = begin == 0 ? 0 : graph.nodes[begin - 1].size;
    LeastBlock block;
    block.model = model_of(graph.nodes, begin, end, base, b + 1 == count_);
    block.cold = least_memory(block.model);
    for (const std::uint32_t kept : kept_sets(block.model)) {
      Way way{kept, 0, 0, 0};
      const auto [first, next] = forward_peaks(block.model, kept, base);
      if (block.ways.empty()) block.peak_first = first, block.peak_next = next;
      if (block.model.loss) break;
      way.peak = first;
      way.after = least_memory(block.model, kept);
      for (std::size_t v = 0; v + 1 < block.model.nodes; ++v)
        if ((kept >> v & 1) != 0) way.bytes += block.model.size[v];
      block.ways.push_back(way);
    }
    return block;
  }

  std::size_t at(std::size_t i, std::size_t j) const { return i * (count_ + 1) + j; }

  // The last block of [i, j) with its base as an additional node, whose F is the advance that leads
  // to it.
  RecomputeModel with_base(std::size_t i, std::size_t j) const {
    const auto [begin, end] = bounds_[j - 1];
    RecomputeModel model = model_of(graph_.nodes, begin - 1, end, 0, j == count_);
    model.forward_bytes[0] = std::max(model.size[0], sweep_peak(i, j - 1));
    for (std::size_t v = bounds_[i].first; v + 1 < begin; ++v) model.forward[0] += graph_.nodes[v].forward;
    return model;
  }

  std::int64_t sweep_peak(std::size_t i, std::size_t k) const {
    std::int64_t peak = blocks_[i].peak_first;
    for (std::size_t b = i + 1; b < k; ++b) peak = std::max(peak, blocks_[b].peak_next);
    return peak;
  }

  std::uint32_t end_of_last(std::size_t j, bool warm) const {
    return warm ? 1u << blocks_[j - 1].model.nodes : 0;  // the base precedes the block's nodes
  }

  std::int64_t least_with_base(std::size_t i, std::size_t j, bool warm) {
    const auto [place, is_new] = with_base_.try_emplace({j, sweep_peak(i, j - 1), warm}, 0);
    if (is_new) place->second = least_memory(with_base(i, j), end_of_last(j, warm));
    return std::max(place->second, warm_[at(i, j - 1)]);
  }

  // take(least memory, last block of the advance or 0, way, memory held while the rest is solved)
  template <class Take>
  void each_choice(std::size_t i, std::size_t j, bool warm, Take take) const {
    const std::int64_t held = j == count_ ? 0 : blocks_[j - 1].end_size() * (warm ? 2 : 1);
    const auto& rest = warm ? warm_ : cold_;
    const LeastBlock& first = blocks_[i];
    for (std::size_t w = 0; w < first.ways.size(); ++w) {
      const Way& way = first.ways[w];
      const std::int64_t less = first.end_size() + way.bytes;
      take(std::max({held + way.peak, less + rest[at(i + 1, j)], way.after}), std::size_t{0}, w, less);
    }
    std::int64_t peak = first.peak_first;
    for (std::size_t k = i + 2; k < j; ++k) {
      peak = std::max(peak, blocks_[k - 1].peak_next);
      const std::int64_t less = blocks_[k - 1].end_size();
      take(std::max({held + peak, less + rest[at(k, j)], warm_[at(i, k)]}), k, std::size_t{0}, less);
    }
  }

  void fill(std::size_t i, std::size_t j) {
    for (const bool warm : {false, true}) {
      if (warm && j == count_) return;
      std::int64_t& least = (warm ? warm_ : cold_)[at(i, j)];
      if (j == i + 1)
        least = warm ? blocks_[i].ways.front().after : blocks_[i].cold;
      else
        each_choice(i, j, warm, [&](std::int64_t memory, std::size_t, std::size_t, std::int64_t) {
          least = std::min(least, memory);
        });
      if (drops_bases_ && j > i + 1) least = std::min(least, least_with_base(i, j, warm));
      if (warm) least = std::min(least, std::max(cold_[at(i, j)], 2 * blocks_[j - 1].end_size()));
    }
  }

  // Among the feasible choices, keeps the most of a block, or advances to the middle.
  void emit(std::size_t i, std::size_t j, std::int64_t memory, bool warm) {
    if (j == i + 1) {
      backward(i, warm ? blocks_[i].ways.front().kept : 0, memory);
      return;
    }
    std::size_t split = 0, way = 0;
    std::int64_t best = kNoMemory, held = 0;
    each_choice(i, j, warm, [&](std::int64_t least, std::size_t k, std::size_t w, std::int64_t less) {
      if (least > memory) return;
      const auto middle = static_cast<std::int64_t>(i + j);
      const std::int64_t off = std::abs(2 * static_cast<std::int64_t>(k == 0 ? i + 1 : k) - middle);
      if (best != kNoMemory && (off > best || (off == best && less <= held))) return;
      best = off, split = k, way = w, held = less;
    });
    if (best == kNoMemory && drops_bases_ && least_with_base(i, j, warm) <= memory) {
      emit_with_base(i, j, memory, warm);
      return;
    }
    if (best == kNoMemory) {
      WEFT_CHECK(warm);
      steps_.push_back({Kind::drop, static_cast<std::int32_t>(bounds_[j - 1].second) - 1});
      emit(i, j, memory, false);
      return;
    }
    const std::size_t last = split == 0 ? i + 1 : split;
    for (std::size_t block = i; block < last; ++block)
      forward(block, split == 0 ? blocks_[i].ways[way].kept : 1u << (blocks_[block].model.nodes - 1),
              block > i);
    emit(last, j, memory - held, warm);
    if (split == 0)
      backward(i, blocks_[i].ways[way].kept, memory);
    else
      emit(i, split, memory, true);
  }

  void emit_with_base(std::size_t i, std::size_t j, std::int64_t memory, bool warm) {
    const auto base = static_cast<std::int32_t>(bounds_[j - 1].first) - 1;
    const auto path = cheapest_path(with_base(i, j), memory, end_of_last(j, warm));
    WEFT_CHECK(path.has_value());
    for (const RecomputeStep& step : path->steps) {
      if (step.node > 0 || step.kind == Kind::drop)
        steps_.push_back({step.kind, base + step.node});
      else if (step.kind == Kind::forward)
        for (std::size_t block = i; block + 1 < j; ++block)
          forward(block, 1u << (blocks_[block].model.nodes - 1), block > i);
    }
    // The B of the base itself belongs to the next range.
    emit(i, j - 1, memory, true);
  }

  void forward(std::size_t block, std::uint32_t kept, bool drops_base) {
    add(block, forward_steps(blocks_[block].model, kept, drops_base));
  }

  void backward(std::size_t block, std::uint32_t there, std::int64_t memory) {
    const auto path = cheapest_path(blocks_[block].model, memory, there);
    WEFT_CHECK(path.has_value());
    add(block, path->steps);
  }

  void add(std::size_t block, std::span<const RecomputeStep> steps) {
    const auto begin = static_cast<std::int32_t>(bounds_[block].first);
    for (const RecomputeStep& step : steps) steps_.push_back({step.kind, begin + step.node});
  }

  const RecomputeGraph& graph_;
  const std::span<const std::pair<std::size_t, std::size_t>> bounds_;
  const std::size_t count_;
  const bool drops_bases_;
  std::map<std::tuple<std::size_t, std::int64_t, bool>, std::int64_t> with_base_;  // block, peak, warm
  std::vector<LeastBlock> blocks_;
  std::vector<std::int64_t> cold_, warm_;
  std::vector<RecomputeStep> steps_;
};

// For each B, recomputes all its operands, each node once, and drops each after its last reader.
LeastMemory from_nothing(const RecomputeModel& model) {
  LeastMemory least;
  for (std::size_t v = model.nodes; v-- > 0;) {
    std::vector<bool> needed(model.nodes), stays(model.nodes);
    needed[v] = stays[v] = true;
    for (const std::int32_t input : model.inputs[v]) stays[static_cast<std::size_t>(input)] = true;
    std::vector<std::size_t> readers(model.nodes);
    for (std::size_t u = v + 1; u-- > 0;)
      if (needed[u])
        for (const std::int32_t input : model.inputs[u]) {
          needed[static_cast<std::size_t>(input)] = true;
          ++readers[static_cast<std::size_t>(input)];
        }
    const bool first = v + 1 == model.nodes;
    std::int64_t used = first ? 0 : model.gradients[v];
    for (std::size_t u = 0; u <= v; ++u) {
      if (!needed[u]) continue;
      used += model.size[u];
      least.bytes = std::max(least.bytes, used);
      least.steps.push_back({Kind::forward, static_cast<std::int32_t>(u)});
      for (const std::int32_t input : model.inputs[u]) {
        const auto place = static_cast<std::size_t>(input);
        if (--readers[place] > 0 || stays[place]) continue;
        used -= model.size[place];
        least.steps.push_back({Kind::drop, input});
      }
    }
    least.bytes = std::max(least.bytes, model.read_by_backward(v) + model.gradients_during[v]);
    least.steps.push_back({Kind::backward, static_cast<std::int32_t>(v)});
    for (const std::int32_t input : model.inputs[v]) least.steps.push_back({Kind::drop, input});
  }
  return least;
}

}  // namespace

LeastMemory least_memory_of(const RecomputeGraph& graph) {
  const RecomputeModel model = model_of(graph.nodes, 0, graph.nodes.size(), 0, true);
  LeastMemory least;
  if (model.nodes <= kMostExactNodes) {
    least.bytes = least_memory(model);
    least.steps = cheapest_path(model, least.bytes)->steps;
    least.proven = true;
    return least;
  }
  const auto bounds = block_bounds(graph.nodes, kMostLeastBlocks);
  const std::int64_t needed = model.needed_at_once();
  least = bounds ? LeastChain(graph, *bounds, false).result() : from_nothing(model);
  if (bounds && least.bytes > needed) least = LeastChain(graph, *bounds, true).result();
  least.proven = least.bytes == needed;
  return least;
}

}  // namespace weft::memory
