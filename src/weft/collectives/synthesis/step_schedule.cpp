#include "weft/collectives/synthesis/step_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace weft::synthesis {

std::optional<std::string> first_fault(const StepNetwork& network, const StepProblem& problem,
                                       const StepSchedule& schedule) {
  const auto devices = static_cast<std::size_t>(network.devices);
  const auto steps = static_cast<std::int32_t>(schedule.rounds.size());
  std::vector<std::vector<char>> has(problem.chunks.size(), std::vector<char>(devices, 0));
  for (std::size_t chunk = 0; chunk < has.size(); ++chunk)
    has[chunk][static_cast<std::size_t>(problem.chunks[chunk].source)] = 1;

  if (!std::ranges::is_sorted(schedule.sends)) return "the sends are not sorted";
  for (const StepSend& send : schedule.sends)
    if (send.step < 0 || send.step >= steps || send.edge < 0 || send.chunk < 0 ||
        static_cast<std::size_t>(send.edge) >= network.edges.size() ||
        static_cast<std::size_t>(send.chunk) >= problem.chunks.size())
      return fmt::format("no such send: chunk {} over edge {} in step {}", send.chunk, send.edge, send.step);

  auto next = schedule.sends.begin();
  for (std::int32_t step = 0; step < steps; ++step) {
    std::vector<std::int64_t> over(network.edges.size(), 0);
    const auto first = next;
    for (; next != schedule.sends.end() && next->step == step; ++next) {
      const StepEdge& edge = network.edges[static_cast<std::size_t>(next->edge)];
      if (!has[static_cast<std::size_t>(next->chunk)][static_cast<std::size_t>(edge.from)])
        return fmt::format("device {} sends chunk {} in step {} before it has it", edge.from, next->chunk,
                           step);
      ++over[static_cast<std::size_t>(next->edge)];
    }
    for (auto send = first; send != next; ++send)
      has[static_cast<std::size_t>(send->chunk)]
         [static_cast<std::size_t>(network.edges[static_cast<std::size_t>(send->edge)].to)] = 1;
    for (const StepLimit& limit : network.limits) {
      std::int64_t chunks = 0;
      for (const std::int32_t edge : limit.edges) chunks += over[static_cast<std::size_t>(edge)];
      if (chunks > chunks_in(limit, schedule.rounds[static_cast<std::size_t>(step)]))
        return fmt::format("{} chunks in step {} where {} fit {} rounds", chunks, step,
                           chunks_in(limit, schedule.rounds[static_cast<std::size_t>(step)]),
                           schedule.rounds[static_cast<std::size_t>(step)]);
    }
  }
  for (std::size_t chunk = 0; chunk < has.size(); ++chunk)
    for (const std::int32_t target : problem.chunks[chunk].targets)
      if (!has[chunk][static_cast<std::size_t>(target)])
        return fmt::format("chunk {} never reaches device {}", chunk, target);
  return std::nullopt;
}

namespace {

// Splits a step in two. The first gets `rounds` rounds and is filled first.
void split_step(const StepNetwork& network, StepSchedule& schedule, std::size_t step, std::int32_t rounds) {
  const auto whole = static_cast<std::int32_t>(step);
  std::vector<std::int64_t> room(network.edges.size());
  for (const StepLimit& limit : network.limits)
    for (const std::int32_t edge : limit.edges)
      room[static_cast<std::size_t>(edge)] = chunks_in(limit, rounds);
  for (StepSend& send : schedule.sends)
    if (send.step > whole || (send.step == whole && room[static_cast<std::size_t>(send.edge)]-- <= 0))
      ++send.step;
  schedule.rounds[step] -= rounds;
  schedule.rounds.insert(schedule.rounds.begin() + static_cast<std::ptrdiff_t>(step), rounds);
  std::ranges::sort(schedule.sends);
}

}  // namespace

bool can_split_steps(const StepNetwork& network) {
  std::vector<char> limited(network.edges.size(), 0);
  for (const StepLimit& limit : network.limits) {
    if (limit.capacity != std::floor(limit.capacity) || limit.edges.size() != 1) return false;
    if (std::exchange(limited[static_cast<std::size_t>(limit.edges[0])], 1)) return false;
  }
  return true;
}

StepSchedule split_steps(const StepNetwork& network, StepSchedule schedule, std::int32_t steps) {
  while (static_cast<std::int32_t>(schedule.rounds.size()) < steps) {
    const auto widest = std::ranges::max_element(schedule.rounds);
    if (*widest < 2) break;
    split_step(network, schedule, static_cast<std::size_t>(widest - schedule.rounds.begin()), *widest / 2);
  }
  return schedule;
}

}  // namespace weft::synthesis
