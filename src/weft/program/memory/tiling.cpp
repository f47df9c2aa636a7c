#include "weft/program/memory/tiling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/program/memory/tiling_cost.h"

namespace weft::memory {
namespace {

constexpr std::int64_t kMostTiles = 1 << 20;

// Tracks where tensors are while steps run.
class TilingRun {
 public:
  TilingRun(const TilingProblem& problem, std::span<const TilingStep> steps)
      : problem_(problem),
        steps_(steps),
        made_by_any_(problem.widths.size()),
        read_by_any_(problem.widths.size()) {
    for (const TilingOperator& op : problem.operators) {
      made_by_any_[static_cast<std::size_t>(op.output)] = true;
      for (const std::int32_t input : op.inputs) read_by_any_[static_cast<std::size_t>(input)] = true;
    }
    in_slow_.resize(problem.widths.size());
    for (std::size_t t = 0; t < in_slow_.size(); ++t) in_slow_[t] = !made_by_any_[t];
    in_fast_.resize(problem.widths.size());
  }

  Result<TilingCost> run() {
    TilingCost price;
    std::vector<bool> done(problem_.operators.size());
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      WEFT_TRY(latency, step(s, done, price));
      price.latencies.push_back(latency);
      price.total += latency;
    }
    for (std::size_t op = 0; op < done.size(); ++op)
      if (!done[op]) return user_error(fmt::format("operator {} is in no step", op));
    for (std::size_t t = 0; t < in_slow_.size(); ++t)
      if (made_by_any_[t] && !read_by_any_[t] && !in_slow_[t])
        return user_error(fmt::format("tensor {} must be in slow memory at the end", t));
    return price;
  }

 private:
  Result<double> step(std::size_t s, std::vector<bool>& done, TilingCost& price) {
    const TilingStep& step = steps_[s];
    const auto wrong = [&](std::string_view what) { return user_error(fmt::format("step {}: {}", s, what)); };
    if (step.operators.empty()) return wrong("it has no operators");
    if (step.width < 1 || step.height < 1 || step.depth < 1)
      return wrong(
          fmt::format("a tile must be positive, found [{}, {}, {}]", step.width, step.height, step.depth));
    for (const std::int32_t op : step.operators) {
      if (op < 0 || static_cast<std::size_t>(op) >= done.size())
        return wrong(fmt::format("there are {} operators, found {}", done.size(), op));
      done[static_cast<std::size_t>(op)] = true;
    }
    TilingResidence residence{in_fast_, std::vector<bool>(in_fast_.size())};
    for (const std::int32_t tensor : step.retained) {
      if (tensor < 0 || static_cast<std::size_t>(tensor) >= in_fast_.size())
        return wrong(fmt::format("there are {} tensors, found {}", in_fast_.size(), tensor));
      residence.after[static_cast<std::size_t>(tensor)] = true;
    }
    const std::vector<bool> written = written_by(s, residence.after);
    auto shape = shape_of(problem_, step.operators, written);
    if (!shape.ok()) return wrong(shape.error().message);
    for (const TilingSlice& slice : shape->read) {
      const auto t = static_cast<std::size_t>(slice.tensor);
      if (!in_slow_[t] && !in_fast_[t]) return wrong(fmt::format("tensor {} is not available", t));
    }
    for (const std::int32_t tensor : step.retained) {
      const bool has = in_fast_[static_cast<std::size_t>(tensor)] ||
                       std::ranges::find(shape->written, tensor) != shape->written.end() ||
                       std::ranges::find(shape->read, tensor, &TilingSlice::tensor) != shape->read.end();
      if (!has) return wrong(fmt::format("tensor {} is not in fast memory to be retained", tensor));
    }
    const std::int64_t held = elements_held(problem_, *shape, step, residence);
    if (held > problem_.capacity)
      return wrong(fmt::format("out of memory: it holds {} elements, the capacity is {}", print_exact(held),
                               print_exact(problem_.capacity)));
    const std::int64_t tiles =
        ((shape->width + step.width - 1) / step.width) * ((shape->height + step.height - 1) / step.height);
    if (tiles > kMostTiles)
      return wrong(fmt::format("expected at most {} tiles, found {}", kMostTiles, tiles));
    std::vector<std::int32_t> order;
    if (step.order) {
      order = *step.order;
      std::vector<std::int32_t> sorted = order;
      std::ranges::sort(sorted);
      for (std::size_t i = 0; i < sorted.size(); ++i)
        if (sorted[i] != static_cast<std::int32_t>(i)) return wrong("an order must have every tile once");
      if (static_cast<std::int64_t>(order.size()) != tiles)
        return wrong(
            fmt::format("an order must have every tile once: {} tiles, found {}", tiles, order.size()));
    }
    for (const std::int32_t tensor : shape->written)
      if (!residence.after[static_cast<std::size_t>(tensor)])
        in_slow_[static_cast<std::size_t>(tensor)] = true;
    price.elements.push_back(held);
    in_fast_ = residence.after;
    return latency_of(problem_, *shape, step, residence, order);
  }

  // The tensors that step s must store: final outputs, tensors that no operator of the step reads,
  // retained ones, and those that a later step reads without making them.
  std::vector<bool> written_by(std::size_t s, const std::vector<bool>& retained) const {
    const auto made_in = [&](const TilingStep& step) {
      std::vector<bool> made(problem_.widths.size());
      for (const std::int32_t op : step.operators)
        made[static_cast<std::size_t>(problem_.operators[static_cast<std::size_t>(op)].output)] = true;
      return made;
    };
    const auto read_in = [&](const TilingStep& step) {
      std::vector<bool> read(problem_.widths.size());
      for (const std::int32_t op : step.operators)
        if (op >= 0 && static_cast<std::size_t>(op) < problem_.operators.size())
          for (const std::int32_t input : problem_.operators[static_cast<std::size_t>(op)].inputs)
            read[static_cast<std::size_t>(input)] = true;
      return read;
    };
    const std::vector<bool> made = made_in(steps_[s]), read = read_in(steps_[s]);
    std::vector<bool> written(made.size());
    for (std::size_t t = 0; t < made.size(); ++t)
      written[t] = made[t] && (!read_by_any_[t] || !read[t] || retained[t]);
    for (std::size_t later = s + 1; later < steps_.size(); ++later) {
      for (const std::int32_t op : steps_[later].operators)
        if (op < 0 || static_cast<std::size_t>(op) >= problem_.operators.size()) return written;
      const std::vector<bool> makes = made_in(steps_[later]), reads = read_in(steps_[later]);
      for (std::size_t t = 0; t < made.size(); ++t)
        if (made[t] && reads[t] && !makes[t]) written[t] = true;
    }
    return written;
  }

  const TilingProblem& problem_;
  const std::span<const TilingStep> steps_;
  std::vector<bool> made_by_any_, read_by_any_, in_slow_, in_fast_;
};

}  // namespace

Status check(const TilingProblem& problem) {
  constexpr std::int64_t kMostSide = 1 << 24;
  const std::size_t tensors = problem.widths.size();
  if (problem.heights.size() != tensors)
    return user_error(
        fmt::format("expected as many heights as widths, found {} and {}", problem.heights.size(), tensors));
  for (std::size_t t = 0; t < tensors; ++t)
    if (problem.widths[t] < 1 || problem.heights[t] < 1 || problem.widths[t] > kMostSide ||
        problem.heights[t] > kMostSide)
      return user_error(fmt::format("tensor {}: expected sides from 1 to {}, found {} x {}", t, kMostSide,
                                    problem.widths[t], problem.heights[t]));
  if (!(problem.bandwidth > 0) || !std::isfinite(problem.bandwidth) || problem.native_width < 1 ||
      problem.native_height < 1 || problem.capacity < 1)
    return user_error("capacity, bandwidth and the native tile must be above 0");
  std::vector<std::int32_t> maker(tensors, -1);
  for (std::size_t i = 0; i < problem.operators.size(); ++i) {
    const TilingOperator& op = problem.operators[i];
    const auto wrong = [&](std::string_view what) {
      return user_error(fmt::format("operator {}: {}", i, what));
    };
    for (const std::int32_t tensor : op.inputs)
      if (tensor < 0 || static_cast<std::size_t>(tensor) >= tensors)
        return wrong(fmt::format("there are {} tensors, found {}", tensors, tensor));
    if (op.output < 0 || static_cast<std::size_t>(op.output) >= tensors)
      return wrong(fmt::format("there are {} tensors, found {}", tensors, op.output));
    if (!(op.base_cost >= 0) || !std::isfinite(op.base_cost))
      return wrong(fmt::format("the cost must be a number from 0, found {}", op.base_cost));
    const auto out = static_cast<std::size_t>(op.output);
    if (std::exchange(maker[out], static_cast<std::int32_t>(i)) >= 0)
      return wrong(fmt::format("tensor {} is made twice", op.output));
    if (op.product) {
      if (op.inputs.size() != 2)
        return wrong(fmt::format("a product has 2 inputs, found {}", op.inputs.size()));
      const auto left = static_cast<std::size_t>(op.inputs[0]),
                 right = static_cast<std::size_t>(op.inputs[1]);
      if (problem.widths[left] != problem.heights[right] || problem.heights[left] != problem.heights[out] ||
          problem.widths[right] != problem.widths[out])
        return wrong("the sizes of a product and its inputs do not match");
    }
  }
  // Rejects cycles.
  std::vector<std::uint8_t> state(problem.operators.size());
  const auto settle = [&](std::size_t first) {
    std::vector<std::pair<std::size_t, std::size_t>> stack{{first, 0}};
    state[first] = 1;
    while (!stack.empty()) {
      auto& [op, next] = stack.back();
      if (next == problem.operators[op].inputs.size()) {
        state[op] = 2;
        stack.pop_back();
        continue;
      }
      const std::int32_t before = maker[static_cast<std::size_t>(problem.operators[op].inputs[next++])];
      if (before < 0 || state[static_cast<std::size_t>(before)] == 2) continue;
      if (state[static_cast<std::size_t>(before)] == 1) return false;
      state[static_cast<std::size_t>(before)] = 1;
      stack.emplace_back(static_cast<std::size_t>(before), 0);
    }
    return true;
  };
  for (std::size_t op = 0; op < state.size(); ++op)
    if (state[op] == 0 && !settle(op)) return user_error("operators have a circular dependency");
  return {};
}

Result<TilingCost> price(const TilingProblem& problem, std::span<const TilingStep> steps) {
  return TilingRun(problem, steps).run();
}

}  // namespace weft::memory
