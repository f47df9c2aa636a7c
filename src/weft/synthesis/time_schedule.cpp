#include "weft/synthesis/time_schedule.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "weft/base/random.h"
#include "weft/synthesis/step_bounds.h"

namespace weft::synthesis {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kEarlier = 1 - 1e-9;  // what is earlier by less is at the same time

std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

double seconds_on(const StepNetwork& network, const StepLimit& limit, double chunk_bytes) {
  return chunk_bytes / (limit.capacity * network.round_rate);
}

// What every edge needs of its limits.
struct EdgeTimes {
  EdgeTimes(const StepNetwork& network, double chunk_bytes)
      : limits(network.edges.size()), busy(network.limits.size()), takes(network.edges.size(), 0) {
    for (std::size_t i = 0; i < network.limits.size(); ++i) {
      busy[i] = seconds_on(network, network.limits[i], chunk_bytes);
      for (const std::int32_t edge : network.limits[i].edges) {
        limits[at(edge)].push_back(i);
        takes[at(edge)] = std::max(takes[at(edge)], busy[i]);
      }
    }
    for (std::size_t i = 0; i < takes.size(); ++i) takes[i] += network.latency[i];
  }

  std::vector<std::vector<std::size_t>> limits;  // of an edge
  std::vector<double> busy;                      // a limit, with one chunk
  std::vector<double> takes;                     // a chunk, from its start to its arrival
};

// From every device to every other, one chunk alone.
std::vector<std::vector<double>> alone(const StepNetwork& network, const EdgeTimes& times) {
  const auto size = at(network.devices);
  std::vector<std::vector<double>> shortest(size, std::vector<double>(size, kNever));
  for (std::size_t i = 0; i < size; ++i) shortest[i][i] = 0;
  for (std::size_t i = 0; i < network.edges.size(); ++i) {
    double& direct = shortest[at(network.edges[i].from)][at(network.edges[i].to)];
    direct = std::min(direct, times.takes[i]);
  }
  for (std::size_t by = 0; by < size; ++by)
    for (std::size_t from = 0; from < size; ++from)
      for (std::size_t to = 0; to < size; ++to)
        shortest[from][to] = std::min(shortest[from][to], shortest[from][by] + shortest[by][to]);
  return shortest;
}

class GreedyTurn {
 public:
  GreedyTurn(const StepNetwork& network, const StepProblem& problem, const EdgeTimes& times,
             const std::vector<std::vector<double>>& shortest, Random& random)
      : network_(network),
        problem_(problem),
        times_(times),
        shortest_(shortest),
        random_(random),
        free_(network.limits.size(), 0),
        arrival_(problem.chunks.size() * at(network.devices), kNever),
        holders_(problem.chunks.size(), 1),
        left_(0) {
    for (std::size_t i = 0; i < problem.chunks.size(); ++i) {
      arrival(i, problem.chunks[i].source) = 0;
      who_has_.push_back({problem.chunks[i].source});
      left_ += problem.chunks[i].targets.size();
    }
    for (std::size_t i = 0; i < network.edges.size(); ++i) order_.push_back(i);
  }

  TimeSchedule run() {
    TimeSchedule made;
    std::priority_queue<double, std::vector<double>, std::greater<>> events;
    events.push(0);
    double now = -1;
    while (left_ > 0 && !events.empty()) {
      const double next = events.top();
      events.pop();
      if (next * kEarlier <= now) continue;
      now = next;
      for (std::size_t i = order_.size(); i > 1; --i)
        std::swap(order_[i - 1],
                  order_[static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(i) - 1))]);
      for (const std::size_t edge : order_)
        while (const auto chunk = choose(edge, now)) {
          const std::int32_t to = network_.edges[edge].to;
          const TimeSend send{now, now + times_.takes[edge], static_cast<std::int32_t>(edge),
                              static_cast<std::int32_t>(*chunk)};
          for (const std::size_t limit : times_.limits[edge]) {
            free_[limit] = now + times_.busy[limit];
            events.push(free_[limit]);
          }
          arrival(*chunk, to) = send.arrives;
          events.push(send.arrives);
          ++holders_[*chunk];
          who_has_[*chunk].push_back(to);
          if (std::ranges::binary_search(problem_.chunks[*chunk].targets, to)) --left_;
          made.finish = std::max(made.finish, send.arrives);
          made.sends.push_back(send);
        }
    }
    std::ranges::sort(made.sends);
    return made;
  }

 private:
  double& arrival(std::size_t chunk, std::int32_t device) {
    return arrival_[chunk * at(network_.devices) + at(device)];
  }

  // What a send is worth: how far the farthest device is that would get the chunk by it as early as it can
  // get it at all, how many there are of these, and how few have the chunk.
  struct Worth {
    double far = -1;
    std::int32_t served = 0, rare = 0;

    friend auto operator<=>(const Worth&, const Worth&) = default;
  };

  // Nothing where it is of no use: the end does not want the chunk, and nobody behind it is served.
  std::optional<Worth> worth(std::size_t chunk, std::size_t edge, double now) {
    const auto [from, to] = network_.edges[edge];
    const double arrives = now + times_.takes[edge];
    const bool is_wanted = std::ranges::binary_search(problem_.chunks[chunk].targets, to);
    Worth found{-1, 0, -holders_[chunk]};
    for (const std::int32_t target : problem_.chunks[chunk].targets) {
      if (arrival(chunk, target) < kNever) continue;
      const double behind = shortest_[at(to)][at(target)];
      const auto [soonest, holder] = nearest(chunk, target, now);
      // Only the nearest passes it on: two would go the same way twice, or wait for each other.
      if ((arrives + behind) * kEarlier > soonest || (!is_wanted && holder != from)) continue;
      found.far = std::max(found.far, behind);
      ++found.served;
    }
    if (!is_wanted && found.served == 0) return std::nullopt;
    return found;
  }

  // When the target could have the chunk, were all edges free from now on, and from whom: the last to get it
  // among equals.
  std::pair<double, std::int32_t> nearest(std::size_t chunk, std::int32_t target, double now) {
    std::pair<double, std::int32_t> best{kNever, -1};
    for (const std::int32_t device : who_has_[chunk]) {
      const double then = std::max(now, arrival(chunk, device)) + shortest_[at(device)][at(target)];
      if (then * kEarlier <= best.first) best = {std::min(then, best.first), device};
    }
    return best;
  }

  std::optional<std::size_t> choose(std::size_t edge, double now) {
    for (const std::size_t limit : times_.limits[edge])
      if (free_[limit] * kEarlier > now) return std::nullopt;
    const auto [from, to] = network_.edges[edge];
    std::optional<std::size_t> best;
    Worth most;
    std::int64_t equals = 0;
    for (std::size_t chunk = 0; chunk < problem_.chunks.size(); ++chunk) {
      if (arrival(chunk, from) * kEarlier > now || arrival(chunk, to) < kNever) continue;
      const auto here = worth(chunk, edge, now);
      if (!here || (best && *here < most)) continue;
      equals = best && *here == most ? equals + 1 : 1;
      most = *here;
      if (equals == 1 || random_.between(1, equals) == 1) best = chunk;
    }
    return best;
  }

  const StepNetwork& network_;
  const StepProblem& problem_;
  const EdgeTimes& times_;
  const std::vector<std::vector<double>>& shortest_;
  Random& random_;
  std::vector<double> free_, arrival_;
  // Devices that have a chunk or are being sent it.
  std::vector<std::int32_t> holders_;
  std::vector<std::vector<std::int32_t>> who_has_;
  std::size_t left_;  // arrivals that are wanted
  std::vector<std::size_t> order_;
};

}  // namespace

double time_bound(const StepNetwork& network, const StepProblem& problem, double chunk_bytes) {
  const auto shortest = alone(network, EdgeTimes(network, chunk_bytes));
  double bound = 0;
  for (const StepChunk& chunk : problem.chunks)
    for (const std::int32_t target : chunk.targets)
      bound = std::max(bound, shortest[at(chunk.source)][at(target)]);
  const StepCut cut = narrowest_cut(network, problem);
  if (cut.chunks > 0) bound = std::max(bound, cut.rounds() * chunk_bytes / network.round_rate);
  return bound;
}

TimeSchedule schedule_in_time(const StepNetwork& network, const StepProblem& problem, double chunk_bytes,
                              const TimeEffort& effort, const StepClock& clock) {
  const EdgeTimes times(network, chunk_bytes);
  const auto shortest = alone(network, times);
  Random random(effort.seed);
  TimeSchedule best;
  std::int32_t turns = 0;
  // One turn is always made: there is an answer whatever the clock says.
  for (; turns < std::max(1, effort.most_turns) && (turns == 0 || !clock.over()); ++turns) {
    TimeSchedule made = GreedyTurn(network, problem, times, shortest, random).run();
    if (turns == 0 || made.finish < best.finish) best = std::move(made);
  }
  best.turns = turns;
  best.bound = time_bound(network, problem, chunk_bytes);
  return best;
}

std::optional<std::string> first_fault(const StepNetwork& network, const StepProblem& problem,
                                       double chunk_bytes, const TimeSchedule& schedule) {
  std::vector<std::vector<double>> there(problem.chunks.size(),
                                         std::vector<double>(at(network.devices), kNever));
  for (std::size_t i = 0; i < there.size(); ++i) there[i][at(problem.chunks[i].source)] = 0;
  std::vector<double> free(network.limits.size(), 0);
  for (const TimeSend& send : schedule.sends) {
    const StepEdge& edge = network.edges[at(send.edge)];
    if (there[at(send.chunk)][at(edge.from)] * kEarlier > send.start)
      return fmt::format("device {} sends chunk {} before it has it", edge.from, send.chunk);
    double passes = 0;
    for (std::size_t i = 0; i < network.limits.size(); ++i) {
      const StepLimit& limit = network.limits[i];
      if (!std::ranges::binary_search(limit.edges, send.edge)) continue;
      if (free[i] * kEarlier > send.start)
        return fmt::format("edge {} carries two chunks at once", send.edge);
      const double busy = seconds_on(network, limit, chunk_bytes);
      free[i] = send.start + busy;
      passes = std::max(passes, busy);
    }
    if ((send.start + passes + network.latency[at(send.edge)]) * kEarlier > send.arrives)
      return fmt::format("chunk {} arrives too early over edge {}", send.chunk, send.edge);
    double& arrival = there[at(send.chunk)][at(edge.to)];
    arrival = std::min(arrival, send.arrives);
    if (send.arrives * kEarlier > schedule.finish) return "something arrives after the finish";
  }
  for (std::size_t i = 0; i < there.size(); ++i)
    for (const std::int32_t target : problem.chunks[i].targets)
      if (there[i][at(target)] == kNever) return fmt::format("chunk {} never comes to device {}", i, target);
  return std::nullopt;
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
