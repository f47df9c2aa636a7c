#include "weft/runtime/run/step_times.h"

#include <algorithm>
#include <cstring>
#include <variant>

#include "weft/base/check.h"

namespace weft::run {
namespace {

const program::Exchange* exchange_of(const program::Program& program, const program::Task& task) {
  return std::get_if<program::Exchange>(&program.units[task.unit].kernel);
}

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

// The time of one exchange in one step without waiting: the least time within each group, and the
// largest of these over the groups.
double alone(const plan::Mesh& mesh, std::size_t axis, std::span<const std::vector<StepTimes>> steps,
             std::size_t step, std::size_t exchange) {
  double slowest = 0;
  for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
    if (mesh.coordinate(rank, axis) != 0) continue;
    double least = steps[static_cast<std::size_t>(rank)][step].exchanges[exchange];
    for (const std::int32_t other : mesh.group(rank, axis))
      least = std::min(least, steps[static_cast<std::size_t>(other)][step].exchanges[exchange]);
    slowest = std::max(slowest, least);
  }
  return slowest;
}

}  // namespace

StepTimes step_times(const program::Program& program, const program::Timeline& timeline) {
  StepTimes times;
  for (std::size_t t = 0; t < program.tasks.size() && t < timeline.tasks.size(); ++t) {
    const double seconds = timeline.tasks[t].end - timeline.tasks[t].begin;
    if (exchange_of(program, program.tasks[t]) != nullptr)
      times.exchanges.push_back(seconds);
    else
      times.compute += seconds;
  }
  return times;
}

RankSpeeds speeds_of(const program::Program& program, const plan::Mesh& mesh,
                     std::span<const std::vector<StepTimes>> steps) {
  WEFT_CHECK(steps.size() == static_cast<std::size_t>(mesh.ranks()));
  RankSpeeds speeds;
  for (const std::vector<StepTimes>& of_rank : steps) {
    std::vector<double> compute;
    for (const StepTimes& step : of_rank) compute.push_back(step.compute);
    speeds.compute.push_back(middle(std::move(compute)));
  }
  std::vector<std::size_t> axes;  // by exchange
  for (const program::Task& task : program.tasks)
    if (const program::Exchange* const exchange = exchange_of(program, task))
      axes.push_back(static_cast<std::size_t>(mesh.find(exchange->axis)));
  speeds.exchange.assign(mesh.axes.size(), 0);
  std::vector<std::vector<double>> by_axis(mesh.axes.size());
  for (std::size_t step = 0; step < steps.front().size(); ++step) {
    std::vector<double> sums(mesh.axes.size());
    for (std::size_t e = 0; e < axes.size(); ++e) sums[axes[e]] += alone(mesh, axes[e], steps, step, e);
    for (std::size_t axis = 0; axis < sums.size(); ++axis) by_axis[axis].push_back(sums[axis]);
  }
  for (std::size_t axis = 0; axis < by_axis.size(); ++axis) speeds.exchange[axis] = middle(by_axis[axis]);
  return speeds;
}

std::vector<std::byte> to_bytes(std::span<const StepTimes> steps) {
  std::vector<double> numbers;
  for (const StepTimes& step : steps) {
    numbers.push_back(step.compute);
    numbers.insert(numbers.end(), step.exchanges.begin(), step.exchanges.end());
  }
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

std::vector<StepTimes> steps_from(std::span<const std::byte> bytes, std::size_t exchanges) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  WEFT_CHECK(numbers.size() % (exchanges + 1) == 0, "ranks of one program have as many exchanges");
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  std::vector<StepTimes> steps;
  for (auto at = numbers.begin(); at != numbers.end();) {
    StepTimes& step = steps.emplace_back();
    step.compute = *at++;
    step.exchanges.assign(at, at + static_cast<std::ptrdiff_t>(exchanges));
    at += static_cast<std::ptrdiff_t>(exchanges);
  }
  return steps;
}

}  // namespace weft::run
