#include "weft/program/memory/recompute_states.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <utility>

namespace weft::memory {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
using StateIndex = std::uint32_t;
using Kind = RecomputeStep::Kind;

// The numbered states of a model, and the transitions from each.
class StateSpace {
 public:
  static constexpr StateIndex kDone = 1;
  // How a state was reached: node + 1 by F, -(node + 1) by a drop, and
  static constexpr std::int8_t kBackward = 0, kLoss = 127;  // the F that makes the loss gradient

  explicit StateSpace(const RecomputeModel& model) : model_(model), nodes_(model.nodes), reads_(model.nodes) {
    for (std::size_t v = 0; v < nodes_; ++v)
      for (const std::int32_t input : model.inputs[v]) reads_[v] |= 1u << input;
  }

  std::size_t count() const { return std::size_t{3} << nodes_; }

  // Before the loss gradient is made, none is held: a separate phase, after that of the last node.
  StateIndex start(std::uint32_t there) const { return index(model_.loss ? nodes_ : nodes_ - 1, there); }

  std::int64_t bytes(StateIndex state) const {
    const std::size_t phase = phase_of(state);
    return bytes_of(state - index(phase, 0)) + gradients(phase);
  }

  // visit(next state, how, memory for the step, time lost by a drop)
  template <class Visit>
  void each_step(StateIndex state, Visit visit) const {
    const std::size_t phase = phase_of(state);
    const std::uint32_t there = state - index(phase, 0);
    const std::int64_t kept = bytes_of(there), used = kept + gradients(phase);
    const std::size_t known = phase == nodes_ ? nodes_ : phase + 1;
    for (std::size_t u = 0; u < known; ++u) {
      const std::uint32_t bit = 1u << u;
      const auto how = static_cast<std::int8_t>(u + 1);
      if ((there & bit) != 0) {
        visit(state ^ bit, static_cast<std::int8_t>(-how), used, model_.forward[u]);
      } else if ((reads_[u] & ~there) == 0) {
        const bool ends = phase == nodes_ && u + 1 == nodes_;
        visit(index(ends ? phase - 1 : phase, there | bit), ends ? kLoss : how,
              used + model_.forward_bytes[u] + (ends ? model_.size[u] : 0), 0.0);
      }
    }
    if (phase == nodes_) return;
    const std::uint32_t own = 1u << phase;
    if (((reads_[phase] | own) & ~there) != 0) return;
    visit(phase == 0 ? kDone : index(phase - 1, there & ~own), kBackward,
          kept + model_.gradients_during[phase], 0.0);
  }

  // The previous state, and the step from it.
  std::pair<StateIndex, RecomputeStep> before(StateIndex state, std::int8_t how) const {
    if (how == kBackward) {
      const std::size_t phase = state == kDone ? 0 : phase_of(state) + 1;
      const std::uint32_t there = state == kDone ? 0 : state - index(phase - 1, 0);
      return {index(phase, there | (1u << phase)), {Kind::backward, static_cast<std::int32_t>(phase)}};
    }
    const std::size_t phase = phase_of(state);
    const std::uint32_t there = state - index(phase, 0);
    const std::size_t u = how == kLoss ? nodes_ - 1 : static_cast<std::size_t>((how > 0 ? how : -how) - 1);
    return {index(how == kLoss ? nodes_ : phase, there ^ (1u << u)),
            {how > 0 ? Kind::forward : Kind::drop, static_cast<std::int32_t>(u)}};
  }

 private:
  // Phase p has p + 1 bits and starts at 2^(p + 1); the forward phase comes after them.
  StateIndex index(std::size_t phase, std::uint32_t there) const {
    return static_cast<StateIndex>((std::size_t{2} << phase) + there);
  }
  std::size_t phase_of(StateIndex state) const { return static_cast<std::size_t>(std::bit_width(state)) - 2; }
  std::int64_t gradients(std::size_t phase) const { return phase == nodes_ ? 0 : model_.gradients[phase]; }
  std::int64_t bytes_of(std::uint32_t there) const {
    std::int64_t total = 0;
    for (; there != 0; there &= there - 1)
      total += model_.size[static_cast<std::size_t>(std::countr_zero(there))];
    return total;
  }

  const RecomputeModel& model_;
  const std::size_t nodes_;
  std::vector<std::uint32_t> reads_;
};

class CheapestPath {
 public:
  CheapestPath(const RecomputeModel& model, std::int64_t memory) : space_(model), memory_(memory) {}

  std::optional<StatePath> run(std::uint32_t there) {
    const StateIndex start = space_.start(there);
    if (space_.bytes(start) > memory_) return {};
    cost_.assign(space_.count(), kFar);
    how_.resize(space_.count());
    expanded_.resize(space_.count());
    cost_[start] = 0;
    // Steps without cost are followed at once, depth first; the queue holds the rest.
    stack_.push_back(start);
    for (double cost = 0;;) {
      while (!stack_.empty()) {
        const StateIndex state = stack_.back();
        stack_.pop_back();
        if (state == StateSpace::kDone) return path(start);
        if (!expanded_[state]) expand(state, cost);
      }
      if (queue_.empty()) return {};
      const StateIndex state = queue_.top().second;
      cost = queue_.top().first;
      queue_.pop();
      if (!expanded_[state]) stack_.push_back(state);
    }
  }

 private:
  void expand(StateIndex state, double cost) {
    expanded_[state] = true;
    space_.each_step(state, [&](StateIndex next, std::int8_t how, std::int64_t needed, double lost) {
      if (needed > memory_ || cost + lost >= cost_[next]) return;
      cost_[next] = cost + lost;
      how_[next] = how;
      if (lost == 0)
        stack_.push_back(next);
      else
        queue_.emplace(cost_[next], next);
    });
  }

  StatePath path(StateIndex start) const {
    StatePath path{cost_[StateSpace::kDone], {}};
    for (StateIndex state = StateSpace::kDone; state != start;) {
      const auto [earlier, step] = space_.before(state, how_[state]);
      path.steps.push_back(step);
      state = earlier;
    }
    std::ranges::reverse(path.steps);
    return path;
  }

  const StateSpace space_;
  const std::int64_t memory_;
  std::vector<double> cost_;
  std::vector<std::int8_t> how_;
  std::vector<bool> expanded_;
  std::vector<StateIndex> stack_;
  std::priority_queue<std::pair<double, StateIndex>, std::vector<std::pair<double, StateIndex>>,
                      std::greater<>>
      queue_;
};

}  // namespace

std::optional<StatePath> cheapest_path(const RecomputeModel& model, std::int64_t memory,
                                       std::uint32_t there) {
  return CheapestPath(model, memory).run(there);
}

// The memory of a path is the maximum over its steps: a shortest-path search with max instead of +.
std::int64_t least_memory(const RecomputeModel& model, std::uint32_t there) {
  const StateSpace space(model);
  std::vector<std::int64_t> peak(space.count(), std::numeric_limits<std::int64_t>::max());
  std::priority_queue<std::pair<std::int64_t, StateIndex>, std::vector<std::pair<std::int64_t, StateIndex>>,
                      std::greater<>>
      queue;
  std::vector<StateIndex> stack;
  // States below the memory that some B needs anyway count as equal, so the search heads straight
  // for the end.
  const StateIndex start = space.start(there);
  peak[start] = std::max(space.bytes(start), model.needed_at_once());
  queue.emplace(peak[start], start);
  for (;;) {
    const auto [now, state] = queue.top();
    queue.pop();
    if (now == peak[state]) stack.push_back(state);
    while (!stack.empty()) {
      const StateIndex at = stack.back();
      stack.pop_back();
      if (at == StateSpace::kDone) return now;
      space.each_step(at, [&, now = now](StateIndex next, std::int8_t, std::int64_t needed, double) {
        const std::int64_t reached = std::max(now, needed);
        if (reached >= peak[next]) return;
        peak[next] = reached;
        if (reached == now)
          stack.push_back(next);
        else
          queue.emplace(reached, next);
      });
    }
  }
}

}  // namespace weft::memory
