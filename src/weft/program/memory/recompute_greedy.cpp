#include "weft/program/memory/recompute_greedy.h"

#include <algorithm>
#include <cmath>

namespace weft::memory {
namespace {

using Kind = RecomputeStep::Kind;

class GreedyRun {
 public:
  GreedyRun(const RecomputeModel& model, std::int64_t memory, const GreedyRule& rule)
      : model_(model),
        memory_(memory),
        rule_(rule),
        there_(model.nodes),
        pins_(model.nodes),
        seen_(model.nodes) {
    most_steps_ = 64 * model.nodes + 4096;
  }

  std::optional<std::vector<RecomputeStep>> run() {
    for (std::size_t v = 0; v < model_.nodes; ++v) {
      clock_ = v;
      if (!there_[v] && !compute(v, 0)) return {};
    }
    for (std::size_t v = model_.nodes; v-- > 0;) {
      clock_ = 2 * model_.nodes - 1 - v;
      next_backward_ = v;
      if (!backward(v)) return {};
    }
    return std::move(steps_);
  }

 private:
  bool backward(std::size_t v) {
    // Inputs first: computing them needs additional memory.
    std::vector<std::size_t> pinned;
    const auto hold = [&](std::size_t u) {
      if (!there_[u] && !compute(u, 0)) return false;
      ++pins_[u];
      pinned.push_back(u);
      return true;
    };
    bool fits = true;
    for (const std::int32_t input : model_.inputs[v]) fits = fits && hold(static_cast<std::size_t>(input));
    fits = fits && hold(v) && make_room(model_.gradients_during[v] - gradients_);
    for (const std::size_t u : pinned) --pins_[u];
    if (!fits) return false;
    steps_.push_back({Kind::backward, static_cast<std::int32_t>(v)});
    there_[v] = false;
    kept_ -= model_.size[v];
    gradients_ = v == 0 ? 0 : model_.gradients[v - 1];
    return true;
  }

  bool compute(std::size_t u, std::size_t depth) {
    constexpr std::size_t kMostDepth = 2000;  // limits recursion to an ordinary stack
    if (depth > kMostDepth || steps_.size() > most_steps_) return false;
    std::size_t pinned = 0;
    bool fits = true;
    for (const std::int32_t input : model_.inputs[u]) {
      const auto place = static_cast<std::size_t>(input);
      fits = there_[place] || compute(place, depth + 1);
      if (!fits) break;
      ++pins_[place];
      ++pinned;
    }
    const bool ends = u + 1 == model_.nodes && gradients_ == 0 && next_backward_ == model_.nodes;
    fits = fits && make_room(model_.size[u] * (ends ? 2 : 1));
    for (std::size_t i = 0; i < pinned; ++i) --pins_[static_cast<std::size_t>(model_.inputs[u][i])];
    if (!fits) return false;
    if (ends) gradients_ = model_.gradients[u], next_backward_ = u;
    there_[u] = true;
    kept_ += model_.size[u];
    steps_.push_back({Kind::forward, static_cast<std::int32_t>(u)});
    return true;
  }

  bool make_room(std::int64_t bytes) {
    while (kept_ + gradients_ + bytes > memory_) {
      std::size_t worst = model_.nodes;
      double least = 0;
      for (std::size_t u = 0; u < model_.nodes; ++u) {
        if (!there_[u] || pins_[u] > 0 || model_.size[u] == 0) continue;
        const double worth = worth_of(u);
        if (worst == model_.nodes || worth < least) worst = u, least = worth;
      }
      if (worst == model_.nodes) return false;
      there_[worst] = false;
      kept_ -= model_.size[worst];
      steps_.push_back({Kind::drop, static_cast<std::int32_t>(worst)});
    }
    return true;
  }

  double worth_of(std::size_t u) {
    const double cost = rule_.with_inputs ? cost_again(u) : model_.forward[u];
    return cost / (static_cast<double>(model_.size[u]) * std::pow(steps_until_read(u), rule_.distance));
  }

  // F of u and of all its missing ancestors.
  double cost_again(std::size_t u) {
    constexpr std::size_t kMostLookedAt = 64;
    ++mark_;
    std::vector<std::size_t> open{u};
    double cost = 0;
    for (std::size_t looked = 0; !open.empty() && looked < kMostLookedAt; ++looked) {
      const std::size_t v = open.back();
      open.pop_back();
      cost += model_.forward[v];
      for (const std::int32_t input : model_.inputs[v]) {
        const auto place = static_cast<std::size_t>(input);
        if (there_[place] || seen_[place] == mark_) continue;
        seen_[place] = mark_;
        open.push_back(place);
      }
    }
    return cost;
  }

  double steps_until_read(std::size_t u) const {
    std::size_t next = 2 * model_.nodes - 1 - u;  // its own B
    for (const std::int32_t reader : model_.readers[u]) {
      const auto r = static_cast<std::size_t>(reader);
      if (r > clock_) next = std::min(next, r);
      if (r <= next_backward_) next = std::min(next, 2 * model_.nodes - 1 - r);
    }
    return static_cast<double>(next > clock_ ? next - clock_ : 0) + 1;
  }

  const RecomputeModel& model_;
  const std::int64_t memory_;
  const GreedyRule rule_;
  std::vector<bool> there_;
  std::vector<std::int32_t> pins_;
  std::vector<std::uint64_t> seen_;
  std::uint64_t mark_ = 0;
  std::size_t clock_ = 0, next_backward_ = model_.nodes, most_steps_ = 0;
  std::int64_t kept_ = 0, gradients_ = 0;
  std::vector<RecomputeStep> steps_;
};

}  // namespace

std::optional<std::vector<RecomputeStep>> greedy_steps(const RecomputeModel& model, std::int64_t memory,
                                                       const GreedyRule& rule) {
  return GreedyRun(model, memory, rule).run();
}

}  // namespace weft::memory
