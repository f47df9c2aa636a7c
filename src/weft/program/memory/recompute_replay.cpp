#include "weft/program/memory/recompute_replay.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::memory {
namespace {

class RecomputeReplayer {
 public:
  explicit RecomputeReplayer(const RecomputeGraph& graph)
      : graph_(graph), kept_(graph.nodes.size()), gradient_(graph.nodes.size()), to_do_(graph.nodes.size()) {
    used_ = graph.input_size;
    replay_.peak = used_;
  }

  Status step(const RecomputeStep& step, std::size_t at) {
    at_ = at;
    if (step.node < 0 || static_cast<std::size_t>(step.node) >= graph_.nodes.size())
      return wrong(step, fmt::format("there are {} nodes", graph_.nodes.size()));
    const auto node = static_cast<std::size_t>(step.node);
    switch (step.kind) {
      case RecomputeStep::Kind::forward: return forward(step, node);
      case RecomputeStep::Kind::drop: return drop(step, node);
      case RecomputeStep::Kind::backward: return backward(step, node);
    }
    return wrong(step, "it is neither F, drop nor B");
  }

  Result<RecomputeReplay> finish() {
    if (to_do_ > 0) return user_error(fmt::format("the steps end before B {}", to_do_ - 1));
    return std::move(replay_);
  }

 private:
  Status wrong(const RecomputeStep& step, std::string_view why) const {
    return user_error(fmt::format("step {}, {}: {}", at_, print(step), why));
  }

  Status forward(const RecomputeStep& step, std::size_t node) {
    if (kept_[node]) return wrong(step, "it is already in memory");
    WEFT_TRY_STATUS(inputs_there(step, node));
    take(kept_, node);
    const bool first_end = node + 1 == graph_.nodes.size() && !loss_seen_;
    if (first_end) loss_seen_ = true, take(gradient_, node);
    replay_.time += graph_.nodes[node].forward;
    look();
    return {};
  }

  Status drop(const RecomputeStep& step, std::size_t node) {
    if (!kept_[node]) return wrong(step, "it is not in memory");
    give_back(kept_, node);
    return {};
  }

  Status backward(const RecomputeStep& step, std::size_t node) {
    if (node + 1 != to_do_) return wrong(step, fmt::format("the next is B {}", to_do_ - 1));
    if (!kept_[node]) return wrong(step, "its x is not in memory");
    if (!gradient_[node]) return wrong(step, "its gradient is not in memory");
    WEFT_TRY_STATUS(inputs_there(step, node));
    for (const std::int32_t input : graph_.nodes[node].inputs)
      if (input >= 0 && !gradient_[static_cast<std::size_t>(input)])
        take(gradient_, static_cast<std::size_t>(input));
    replay_.time += graph_.nodes[node].backward;
    look();
    give_back(gradient_, node);
    give_back(kept_, node);
    --to_do_;
    return {};
  }

  Status inputs_there(const RecomputeStep& step, std::size_t node) const {
    for (const std::int32_t input : graph_.nodes[node].inputs)
      if (input >= 0 && !kept_[static_cast<std::size_t>(input)])
        return wrong(step, fmt::format("its input {} is not in memory", input));
    return {};
  }

  void take(std::vector<bool>& set, std::size_t node) {
    set[node] = true;
    used_ += graph_.nodes[node].size;
  }
  void give_back(std::vector<bool>& set, std::size_t node) {
    set[node] = false;
    used_ -= graph_.nodes[node].size;
  }

  void look() {
    if (used_ <= replay_.peak) return;
    replay_.peak = used_;
    replay_.peak_step = at_;
    replay_.held = fmt::format("the input, x of {}{}", names(kept_),
                               std::ranges::find(gradient_, true) == gradient_.end()
                                   ? std::string()
                                   : fmt::format(", gradients of {}", names(gradient_)));
  }

  std::string names(const std::vector<bool>& set) const {
    constexpr std::size_t kMostNamed = 8;
    std::vector<std::string_view> named;
    std::size_t count = 0;
    for (std::size_t node = 0; node < set.size(); ++node)
      if (set[node] && ++count <= kMostNamed) named.push_back(graph_.nodes[node].name);
    std::string text = fmt::format("{}", fmt::join(named, " and "));
    if (count > kMostNamed) text += fmt::format(" and {} more", count - kMostNamed);
    return text;
  }

  const RecomputeGraph& graph_;
  std::vector<bool> kept_, gradient_;
  std::size_t to_do_, at_ = 0;  // backward steps
  bool loss_seen_ = false;
  std::int64_t used_ = 0;
  RecomputeReplay replay_;
};

}  // namespace

Result<RecomputeReplay> replay(const RecomputeGraph& graph, std::span<const RecomputeStep> steps) {
  RecomputeReplayer referee(graph);
  for (std::size_t i = 0; i < steps.size(); ++i) WEFT_TRY_STATUS(referee.step(steps[i], i));
  return referee.finish();
}

}  // namespace weft::memory
