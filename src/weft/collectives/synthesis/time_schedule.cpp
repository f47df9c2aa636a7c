#include "weft/collectives/synthesis/time_schedule.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "weft/collectives/synthesis/step_bounds.h"

namespace weft::synthesis {
namespace {

// The chunk that last passed a limit, and when.
struct LimitUse {
  double since = -1, until = 0;
  std::int32_t chunk = -1, from = -1;
};

}  // namespace

EdgeTimes::EdgeTimes(const StepNetwork& network, double chunk_bytes)
    : limits(network.edges.size()), busy(network.limits.size()), takes(network.edges.size(), 0) {
  for (std::size_t i = 0; i < network.limits.size(); ++i) {
    busy[i] = chunk_bytes / (network.limits[i].capacity * network.round_rate);
    for (const std::int32_t edge : network.limits[i].edges) {
      limits[at(edge)].push_back(static_cast<std::int32_t>(i));
      takes[at(edge)] = std::max(takes[at(edge)], busy[i]);
    }
  }
  for (std::size_t i = 0; i < takes.size(); ++i) takes[i] += network.latency[i];
  // The link at an end is the limit that only edges with this end share.
  std::vector<char> one_start(network.limits.size()), one_end(network.limits.size());
  for (std::size_t i = 0; i < network.limits.size(); ++i) {
    const auto edge = [&](std::int32_t number) { return network.edges[at(number)]; };
    const auto& edges = network.limits[i].edges;
    const StepEdge one = edge(edges.front());
    one_start[i] = std::ranges::all_of(edges, [&](std::int32_t e) { return edge(e).from == one.from; });
    one_end[i] = std::ranges::all_of(edges, [&](std::int32_t e) { return edge(e).to == one.to; });
  }
  for (const std::vector<std::int32_t>& list : limits) {
    first.push_back(list.front());
    last.push_back(list.back());
    for (const std::int32_t limit : list) {
      const auto wider = [&](std::int32_t than) {
        return network.limits[at(limit)].edges.size() > network.limits[at(than)].edges.size();
      };
      if (one_start[at(limit)] != 0 && (one_start[at(first.back())] == 0 || wider(first.back())))
        first.back() = limit;
      if (one_end[at(limit)] != 0 && (one_end[at(last.back())] == 0 || wider(last.back())))
        last.back() = limit;
    }
  }

  const auto size = at(network.devices);
  shortest.assign(size, std::vector<double>(size, kNever));
  for (std::size_t i = 0; i < size; ++i) shortest[i][i] = 0;
  for (std::size_t i = 0; i < network.edges.size(); ++i) {
    double& direct = shortest[at(network.edges[i].from)][at(network.edges[i].to)];
    direct = std::min(direct, takes[i]);
  }
  for (std::size_t by = 0; by < size; ++by)
    for (std::size_t from = 0; from < size; ++from)
      for (std::size_t to = 0; to < size; ++to)
        shortest[from][to] = std::min(shortest[from][to], shortest[from][by] + shortest[by][to]);
}

double time_bound(const StepNetwork& network, const StepProblem& problem, double chunk_bytes,
                  double part_bytes) {
  const EdgeTimes times(network, part_bytes);
  double bound = 0;
  for (const StepChunk& chunk : problem.chunks)
    for (const std::int32_t target : chunk.targets)
      bound = std::max(bound, times.shortest[at(chunk.source)][at(target)]);
  const double least =
      network.latency.empty() ? 0 : *std::min_element(network.latency.begin(), network.latency.end());
  // Also valid for switches that copy, since a chunk counts once.
  const StepCut cut = narrowest_cut(network, problem);
  if (cut.chunks > 0) bound = std::max(bound, cut.rounds() * chunk_bytes / network.round_rate + least);
  // A device receives everything over its last links.
  std::vector<double> wanted(at(network.devices), 0);
  for (const StepChunk& chunk : problem.chunks)
    for (const std::int32_t target : chunk.targets) wanted[at(target)] += chunk_bytes;
  for (std::int32_t device = 0; device < network.devices; ++device) {
    std::vector<char> counted(network.limits.size(), 0);
    double rate = 0;
    for (std::size_t e = 0; e < network.edges.size(); ++e) {
      if (network.edges[e].to != device) continue;
      const std::int32_t last = times.last[e];
      if (counted[at(last)] != 0) continue;
      counted[at(last)] = 1;
      rate += network.limits[at(last)].capacity * network.round_rate;
    }
    if (rate > 0 && wanted[at(device)] > 0) bound = std::max(bound, wanted[at(device)] / rate + least);
  }
  return bound;
}

std::optional<std::string> first_fault(const StepNetwork& network, const StepProblem& problem,
                                       double chunk_bytes, const TimeSchedule& schedule) {
  const EdgeTimes times(network, chunk_bytes);
  std::vector<std::vector<double>> there(problem.chunks.size(),
                                         std::vector<double>(at(network.devices), kNever));
  for (std::size_t i = 0; i < there.size(); ++i) there[i][at(problem.chunks[i].source)] = 0;
  std::vector<LimitUse> passing(network.limits.size());
  for (const TimeSend& send : schedule.sends) {
    const StepEdge& edge = network.edges[at(send.edge)];
    if (is_later(there[at(send.chunk)][at(edge.from)], send.start))
      return fmt::format("device {} sends chunk {} before it has it", edge.from, send.chunk);
    for (const std::int32_t limit : times.limits[at(send.edge)]) {
      LimitUse& now = passing[at(limit)];
      const bool together = network.limits[at(limit)].copied && now.since == send.start &&
                            now.chunk == send.chunk && now.from == edge.from;
      if (!together && is_later(now.until, send.start))
        return fmt::format("edge {} carries two chunks at once", send.edge);
      now = {send.start, send.start + times.busy[at(limit)], send.chunk, edge.from};
    }
    if (is_later(send.start + times.takes[at(send.edge)], send.arrives))
      return fmt::format("chunk {} arrives too early over edge {}", send.chunk, send.edge);
    double& arrival = there[at(send.chunk)][at(edge.to)];
    arrival = std::min(arrival, send.arrives);
    if (is_later(send.arrives, schedule.finish)) return "something arrives after the finish";
  }
  for (std::size_t i = 0; i < there.size(); ++i)
    for (const std::int32_t target : problem.chunks[i].targets)
      if (there[i][at(target)] == kNever) return fmt::format("chunk {} never reaches device {}", i, target);
  return std::nullopt;
}

void drop_idle_sends(const StepNetwork& network, const StepProblem& problem, TimeSchedule& schedule) {
  const auto devices = at(network.devices);
  std::vector<char> needed(problem.chunks.size() * devices, 0);
  for (std::size_t c = 0; c < problem.chunks.size(); ++c)
    for (const std::int32_t target : problem.chunks[c].targets) needed[c * devices + at(target)] = 1;
  std::vector<TimeSend> kept;
  for (auto send = schedule.sends.rbegin(); send != schedule.sends.rend(); ++send) {
    const StepEdge& edge = network.edges[at(send->edge)];
    if (needed[at(send->chunk) * devices + at(edge.to)] == 0) continue;
    needed[at(send->chunk) * devices + at(edge.from)] = 1;
    kept.push_back(*send);
  }
  std::ranges::reverse(kept);
  schedule.sends = std::move(kept);
  schedule.finish = 0;
  for (const TimeSend& send : schedule.sends) schedule.finish = std::max(schedule.finish, send.arrives);
}

StepSchedule in_order(const TimeSchedule& schedule) {
  StepSchedule ordered;
  for (const TimeSend& send : schedule.sends) {
    ordered.sends.push_back({static_cast<std::int32_t>(ordered.rounds.size()), send.edge, send.chunk});
    ordered.rounds.push_back(1);
  }
  return ordered;
}

}  // namespace weft::synthesis
