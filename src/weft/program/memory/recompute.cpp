#include "weft/program/memory/recompute.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/program/memory/recompute_chain.h"
#include "weft/program/memory/recompute_greedy.h"
#include "weft/program/memory/recompute_least.h"
#include "weft/program/memory/recompute_model.h"
#include "weft/program/memory/recompute_polish.h"
#include "weft/program/memory/recompute_replay.h"
#include "weft/program/memory/recompute_states.h"

namespace weft::memory {
namespace {

Status accept(const RecomputeGraph& graph) {
  if (graph.nodes.empty()) return user_error("expected at least one node, found none");
  if (graph.nodes.size() > kMostRecomputeNodes)
    return user_error(
        fmt::format("expected at most {} nodes, found {}", kMostRecomputeNodes, graph.nodes.size()));
  if (graph.input_size < 0)
    return user_error(fmt::format("the size of the input must not be negative, found {}", graph.input_size));
  std::vector<bool> read(graph.nodes.size());
  std::int64_t total = graph.input_size;
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    const RecomputeNode& node = graph.nodes[v];
    const auto wrong = [&](std::string_view what, auto value) {
      return user_error(fmt::format("node {} ({}): {}, found {}", v, node.name, what, value));
    };
    if (!(node.forward >= 0 && node.backward >= 0) || !std::isfinite(node.forward + node.backward))
      return wrong("times must be numbers from 0", fmt::format("{} and {}", node.forward, node.backward));
    if (node.size < 0) return wrong("the size must not be negative", node.size);
    for (const std::int32_t input : node.inputs) {
      if (input < -1 || input >= static_cast<std::int32_t>(v))
        return wrong("inputs must be earlier nodes or -1", input);
      if (input >= 0) read[static_cast<std::size_t>(input)] = true;
    }
    // x and its gradient, twice: no sum below overflows.
    std::int64_t four = 0;
    if (__builtin_mul_overflow(node.size, std::int64_t{4}, &four) ||
        __builtin_add_overflow(total, four, &total))
      return user_error("the sizes of all nodes must add up to less than 2^61");
  }
  for (std::size_t v = 0; v + 1 < graph.nodes.size(); ++v)
    if (!read[v])
      return user_error(
          fmt::format("node {} ({}) is never read and is not the last node", v, graph.nodes[v].name),
          "it has no gradient: remove it");
  return {};
}

double time_of(const RecomputeGraph& graph, std::span<const RecomputeStep> steps) {
  double time = 0;
  for (const RecomputeStep& step : steps) {
    const RecomputeNode& node = graph.nodes[static_cast<std::size_t>(step.node)];
    if (step.kind == RecomputeStep::Kind::forward) time += node.forward;
    if (step.kind == RecomputeStep::Kind::backward) time += node.backward;
  }
  return time;
}

// Keeps the fastest steps offered.
class Best {
 public:
  Best(const RecomputeGraph& graph, std::vector<RecomputeStep> steps)
      : graph_(graph), time_(time_of(graph, steps)), steps_(std::move(steps)) {}

  void offer(std::vector<RecomputeStep> steps) {
    const double time = time_of(graph_, steps);
    if (time < time_) time_ = time, steps_ = std::move(steps);
  }
  std::vector<RecomputeStep> take() { return std::move(steps_); }

 private:
  const RecomputeGraph& graph_;
  double time_;
  std::vector<RecomputeStep> steps_;
};

// The steps that drop nothing, and the memory that they need.
std::pair<std::vector<RecomputeStep>, std::int64_t> keeping_all(const RecomputeModel& model) {
  std::vector<RecomputeStep> steps;
  std::int64_t all = 0, most = 0;
  for (std::size_t v = 0; v < model.nodes; ++v) {
    steps.push_back({RecomputeStep::Kind::forward, static_cast<std::int32_t>(v)});
    most = std::max(most, (all += model.size[v]) + model.gradients_during[v]);
  }
  for (std::size_t v = model.nodes; v-- > 0;)
    steps.push_back({RecomputeStep::Kind::backward, static_cast<std::int32_t>(v)});
  return {std::move(steps), most};
}

// Polishing and heuristics may give worse results with more memory. So they run at fixed memory
// levels, and all levels up to `memory` are tried: then more memory never costs more time.
std::vector<RecomputeStep> steps_within(const RecomputeGraph& graph, const RecomputeModel& model,
                                        const LeastMemory& least, std::int64_t memory) {
  constexpr std::int64_t kLevels = 12;
  constexpr std::size_t kMostMended = 8000;      // steps: polishing takes quadratic time
  constexpr std::size_t kMostGreedyNodes = 300;  // a greedy run takes cubic time
  const auto [all_kept, enough] = keeping_all(model);
  if (memory >= enough) return all_kept;
  Best best(graph, least.steps);
  const auto blocks = cut_into_blocks(graph);
  std::optional<ChainSchedules> chain;
  if (blocks) chain.emplace(*blocks);
  const auto is_chained = [&](std::int64_t bytes) { return chain && std::isfinite(chain->cost(bytes)); };
  if (is_chained(memory)) best.offer(chain->steps(memory));
  for (std::int64_t level = 0; level < kLevels; ++level) {
    const std::int64_t bytes = least.bytes + (enough - least.bytes) / kLevels * level;
    if (bytes > memory) break;
    const auto offer_mended = [&](std::vector<RecomputeStep> steps) {
      if (steps.size() <= kMostMended) best.offer(without_needless_drops(model, std::move(steps), bytes));
    };
    offer_mended(is_chained(bytes) ? chain->steps(bytes) : least.steps);
    if (model.nodes > kMostGreedyNodes) continue;
    for (const double distance : {0.0, 0.5, 1.0, 2.0})
      for (const bool with_inputs : {false, true})
        if (auto steps = greedy_steps(model, bytes, {distance, with_inputs})) offer_mended(std::move(*steps));
  }
  return best.take();
}

}  // namespace

std::string print(const RecomputeStep& step) {
  using enum RecomputeStep::Kind;
  return fmt::format("{} {}", step.kind == forward ? "F" : step.kind == drop ? "drop" : "B", step.node);
}

Result<Recomputation> recompute(const RecomputeGraph& graph, std::int64_t budget) {
  WEFT_TRY_STATUS(accept(graph));
  const RecomputeModel model = model_of(graph.nodes, 0, graph.nodes.size(), 0, true);
  LeastMemory least = least_memory_of(graph);
  Recomputation found;
  found.least_budget = graph.input_size + least.bytes;
  found.least_proven = least.proven;
  found.feasible = budget >= found.least_budget;
  if (!found.feasible) {
    found.least_steps = std::move(least.steps);
    return found;
  }
  const std::int64_t memory = budget - graph.input_size;
  if (model.nodes <= kMostExactNodes) {
    found.steps = cheapest_path(model, memory)->steps;
    found.proven = true;
  } else {
    found.steps = steps_within(graph, model, least, memory);
  }
  const auto replayed = replay(graph, found.steps);
  WEFT_CHECK(replayed.ok() && replayed->peak <= budget);
  found.time = replayed->time;
  return found;
}

}  // namespace weft::memory
