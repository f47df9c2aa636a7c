#include "weft/predict/sim/step/program_tasks.h"

#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "weft/program/tasks/without_overlap.h"

namespace weft::sim {
namespace {

Result<ExchangeTask> price_exchange(const program::Exchange& exchange, std::uint32_t task,
                                    const plan::Mesh& mesh, const cost::StepCosts& costs) {
  const int axis = mesh.find(exchange.axis);
  if (axis < 0)
    return user_error(
        fmt::format("the program communicates along axis {}, which the mesh lacks", exchange.axis),
        fmt::format("it has {}", plan::print(mesh)));
  ExchangeTask made{
      task, static_cast<std::uint32_t>(axis), static_cast<std::uint32_t>(axis), exchange.kind, 0, {}};
  if (exchange.algorithm.priority == collective::Priority::low)
    made.lane += static_cast<std::uint32_t>(mesh.axes.size());
  made.bytes = cost::message_bytes(exchange);
  made.price = costs.exchange(exchange, made.axis, made.bytes);
  // The program's algorithm is what runs; it was chosen for the rank with the largest shard.
  if (!exchange.algorithm.name.empty()) {
    made.price.algorithm = exchange.algorithm.name;
    made.price.protocol = exchange.algorithm.protocol;
  }
  if (!std::isfinite(made.price.seconds()))
    return user_error(
        fmt::format("a step sends over mesh axis {}, but its link has no bandwidth: {} per step",
                    exchange.axis, made.bytes),
        fmt::format("state it: LINK name WITHIN | ACROSS node (50 GB/s, 5 us)"));
  return made;
}

}  // namespace

Result<ProgramTasks> estimate_tasks(std::shared_ptr<const program::Program> program, const plan::Mesh& mesh,
                                    const cost::StepCosts& costs, bool overlap, int workers) {
  const program::Program& of = *program;
  ProgramTasks tasks;
  tasks.program = std::move(program);
  const std::size_t count = of.tasks.size();
  tasks.seconds.resize(count);
  tasks.sources.resize(count);
  tasks.exchange.assign(count, ProgramTasks::kComputes);
  tasks.streams.resize(overlap ? of.streams.size() : 1);
  tasks.lane_orders.resize(2 * mesh.axes.size());
  tasks.waits.resize(count);
  tasks.first_after.resize(count + 1);
  for (std::uint32_t t = 0; t < count; ++t) {
    const program::Task& task = of.tasks[t];
    if (const auto* exchange = std::get_if<program::Exchange>(&of.units[task.unit].kernel)) {
      WEFT_TRY(made, price_exchange(*exchange, t, mesh, costs));
      tasks.exchange[t] = static_cast<std::uint32_t>(tasks.exchanges.size());
      tasks.lane_orders[made.lane].push_back(tasks.exchange[t]);
      tasks.exchanges.push_back(std::move(made));
    } else {
      const cost::TaskCost price = costs.compute(of, task);
      tasks.seconds[t] = price.seconds;
      tasks.sources[t] = price.source;
    }
    tasks.streams[tasks.stream_of(t, overlap)].push_back(t);
  }
  if (!overlap && workers > 1 && !tasks.exchanges.empty()) {
    std::vector<std::uint32_t> moves;
    for (const ExchangeTask& exchange : tasks.exchanges) moves.push_back(exchange.task);
    tasks.apart = program::waits_without_overlap(of.tasks, moves);
  }
  for (std::uint32_t t = 0; t < count; ++t) {
    tasks.waits[t] = static_cast<std::uint32_t>(tasks.waits_of(t).size());
    for (const std::uint32_t wait : tasks.waits_of(t)) ++tasks.first_after[wait + 1];
  }
  for (std::size_t t = 0; t < count; ++t) tasks.first_after[t + 1] += tasks.first_after[t];
  tasks.after.resize(tasks.first_after[count]);
  std::vector<std::uint32_t> next(tasks.first_after.begin(), tasks.first_after.end());
  for (std::uint32_t t = 0; t < count; ++t)
    for (const std::uint32_t wait : tasks.waits_of(t)) tasks.after[next[wait]++] = t;
  return tasks;
}

}  // namespace weft::sim
