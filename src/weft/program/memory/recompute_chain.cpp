#include "weft/program/memory/recompute_chain.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weft/base/check.h"
#include "weft/program/memory/recompute_states.h"

namespace weft::memory {
namespace {

constexpr double kNoSchedule = std::numeric_limits<double>::infinity();
using Kind = RecomputeStep::Kind;

}  // namespace

ChainSchedules::ChainSchedules(const Blocks& blocks) : blocks_(blocks), count_(blocks.blocks.size()) {
  const auto cells = static_cast<std::size_t>(blocks_.most) + 1;
  spans_.resize(blocks_.stretches.size());
  // Shorter ranges have lower numbers.
  for (std::size_t s = 0; s < spans_.size(); ++s) {
    const auto [i, j] = blocks_.stretches[s];
    spans_[s].cold.assign(cells, kNoSchedule);
    fill(i, j, false);
    if (j == count_) continue;  // its end is made once, with the loss
    spans_[s].warm.assign(cells, kNoSchedule);
    fill(i, j, true);
  }
}

std::int64_t ChainSchedules::held(std::size_t j, bool warm) const {
  if (j == count_) return 0;  // the loss is made after all advances to it
  return kind(j - 1).end_size * (warm ? 2 : 1);
}

// take(choice, cost, least memory, table for the rest, memory offset into that table, table for
// what follows)
template <class Take>
void ChainSchedules::each_choice(std::size_t i, std::size_t j, bool warm, Take take) const {
  const auto rest = [&](std::size_t k) -> const std::vector<double>& {
    return warm ? span(k, j).warm : span(k, j).cold;
  };
  const BlockKind& first = kind(i);
  const std::int64_t held_now = held(j, warm);
  for (std::size_t w = 0; w < first.ways.size(); ++w) {
    const BlockOption& way = first.ways[w];
    take(Choice{0, w}, way.dropped, held_now + way.peak, rest(i + 1), first.end_size + way.bytes, way.after);
  }
  double swept = first.forward;
  std::int64_t peak = first.peak_first;
  for (std::size_t k = i + 2; k < j; ++k) {
    const BlockKind& last = kind(k - 1);
    swept += last.forward;
    peak = std::max(peak, last.peak_next);
    take(Choice{k, 0}, swept - last.end_forward, held_now + peak, rest(k), last.end_size, span(i, k).warm);
  }
}

void ChainSchedules::fill(std::size_t i, std::size_t j, bool warm) {
  Span& own = spans_[blocks_.stretch(i, j)];
  std::vector<double>& costs = warm ? own.warm : own.cold;
  const auto cells = static_cast<std::int64_t>(costs.size());
  if (j == i + 1) {
    const BlockKind& block = kind(i);
    for (std::int64_t m = 0; m < cells; ++m)
      costs[static_cast<std::size_t>(m)] = warm ? block.after(0, m) : block.cold_cost(m);
    return;
  }
  each_choice(i, j, warm,
              [&](const Choice&, double cost, std::int64_t least, const std::vector<double>& rest,
                  std::int64_t less, const std::vector<double>& then) {
                const std::int64_t from = std::max(least, less);
                const auto known = std::min<std::int64_t>(cells, static_cast<std::int64_t>(then.size()));
                double* out = costs.data();
                const double *inner = rest.data(), *after = then.data();
                for (std::int64_t m = from; m < known; ++m)
                  out[m] = std::min(out[m], cost + inner[m - less] + after[m]);
                const double last = then.back();
                for (std::int64_t m = std::max(from, known); m < cells; ++m)
                  out[m] = std::min(out[m], cost + inner[m - less] + last);
              });
  if (!warm) return;
  const double again = kind(j - 1).end_forward;
  for (std::size_t m = 0; m < costs.size(); ++m) costs[m] = std::min(costs[m], again + own.cold[m]);
}

double ChainSchedules::cost(std::int64_t memory) const {
  if (memory < 0) return kNoSchedule;
  return span(0, count_).cold[static_cast<std::size_t>(std::min(memory / blocks_.unit, blocks_.most))];
}

std::vector<RecomputeStep> ChainSchedules::steps(std::int64_t memory) const {
  steps_.clear();
  emit(0, count_, std::min(memory / blocks_.unit, blocks_.most), false);
  return std::move(steps_);
}

void ChainSchedules::emit(std::size_t i, std::size_t j, std::int64_t memory, bool warm) const {
  const BlockKind& first = kind(i);
  const Span& own = span(i, j);
  const double wanted = (warm ? own.warm : own.cold)[static_cast<std::size_t>(memory)];
  WEFT_CHECK(wanted < kNoSchedule);
  if (j == i + 1) {
    emit_backward(i, warm ? 1u << (first.model.nodes - 1) : 0, memory);
    return;
  }
  if (warm && wanted == kind(j - 1).end_forward + own.cold[static_cast<std::size_t>(memory)]) {
    steps_.push_back({Kind::drop, static_cast<std::int32_t>(blocks_.blocks[j - 1].end) - 1});
    emit(i, j, memory, false);
    return;
  }
  Choice chosen;
  std::int64_t inner = 0;
  bool found = false;
  each_choice(i, j, warm,
              [&](const Choice& choice, double cost, std::int64_t least, const std::vector<double>& rest,
                  std::int64_t less, const std::vector<double>& then) {
                if (found || memory < std::max(least, less)) return;
                found = cost + rest[static_cast<std::size_t>(memory - less)] + BlockKind::at(then, memory) ==
                        wanted;
                if (found) chosen = choice, inner = memory - less;
              });
  WEFT_CHECK(found);
  if (chosen.split == 0) {
    const std::uint32_t kept = first.ways[chosen.way].kept;
    emit_forward(i, kept, false);
    emit(i + 1, j, inner, warm);
    emit_backward(i, kept, memory);
    return;
  }
  for (std::size_t block = i; block < chosen.split; ++block)
    emit_forward(block, 1u << (kind(block).model.nodes - 1), block > i);
  emit(chosen.split, j, inner, warm);
  emit(i, chosen.split, memory, true);
}

void ChainSchedules::emit_forward(std::size_t block, std::uint32_t kept, bool drops_base) const {
  const auto begin = static_cast<std::int32_t>(blocks_.blocks[block].begin);
  for (const RecomputeStep& step : forward_steps(kind(block).model, kept, drops_base))
    steps_.push_back({step.kind, begin + step.node});
}

void ChainSchedules::emit_backward(std::size_t block, std::uint32_t there, std::int64_t memory) const {
  const auto begin = static_cast<std::int32_t>(blocks_.blocks[block].begin);
  const auto path = cheapest_path(kind(block).model, memory, there);
  WEFT_CHECK(path.has_value());
  for (const RecomputeStep& step : path->steps) steps_.push_back({step.kind, begin + step.node});
}

}  // namespace weft::memory
