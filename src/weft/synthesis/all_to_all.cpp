#include "weft/synthesis/all_to_all.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <tuple>

#include "weft/base/check.h"

namespace weft::synthesis {
namespace {

constexpr double kFlowGap = 0.01;
constexpr std::int32_t kDeals = 4;  // times that every chunk's path is chosen again

// Which path every chunk takes.
class Dealer {
 public:
  Dealer(const FlowNetwork& network, const ConcurrentFlow& flow)
      : network_(network), flow_(flow), load_(network.capacities.size(), 0) {
    for (std::size_t p = 0; p < flow.paths.size(); ++p)
      of_pair_[{flow.paths[p].from, flow.paths[p].to}].push_back(p);
  }

  // By chunk, as step_problem() numbers them.
  std::vector<std::size_t> deal(std::int32_t devices, std::int32_t cut) {
    const auto chunk_of = [&](std::int32_t from, std::int32_t to, std::int32_t copy) {
      return at((from * devices + to) * cut + copy);
    };
    std::vector<std::size_t> chosen(at(devices * devices * cut), flow_.paths.size());
    // First by the flow's shares, then each where it weighs least.
    for (std::int32_t pass = 0; pass <= kDeals; ++pass)
      for (const auto& [pair, paths] : of_pair_)
        for (std::int32_t copy = 0; copy < cut; ++copy) {
          std::size_t& choice = chosen[chunk_of(pair.first, pair.second, copy)];
          if (pass > 0) add(choice, -1);
          choice = pass == 0 ? by_share(paths, copy, cut) : lightest(paths);
          add(choice, 1);
        }
    return chosen;
  }

 private:
  std::size_t by_share(const std::vector<std::size_t>& paths, std::int32_t copy, std::int32_t cut) const {
    double point = (copy + 0.5) / cut;
    for (const std::size_t path : paths) {
      point -= flow_.paths[path].share;
      if (point <= 0) return path;
    }
    return paths.back();
  }

  void add(std::size_t path, double amount) {
    for (const std::int32_t arc : flow_.paths[path].arcs)
      for (const std::int32_t use : network_.arcs[at(arc)].uses)
        load_[at(use)] += amount / network_.capacities[at(use)];
    most_ = *std::ranges::max_element(load_);
  }

  // A load that is near the greatest weighs far more than others.
  std::size_t lightest(const std::vector<std::size_t>& paths) const {
    std::size_t best = paths.front();
    double least = kNever;
    for (const std::size_t path : paths) {
      double weight = 0;
      for (const std::int32_t arc : flow_.paths[path].arcs)
        for (const std::int32_t use : network_.arcs[at(arc)].uses) {
          const double share = load_[at(use)] / most_;
          weight += std::exp(24 * (share - 1)) / network_.capacities[at(use)];
        }
      if (weight < least) least = weight, best = path;
    }
    return best;
  }

  const FlowNetwork& network_;
  const ConcurrentFlow& flow_;
  std::vector<double> load_;
  double most_ = 1;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::size_t>> of_pair_;
};

struct Travelling {
  std::int32_t chunk = 0;
  const std::vector<std::int32_t>* arcs = nullptr;
  std::size_t next = 0;       // arc
  std::vector<double> to_go;  // seconds from the arc on
  std::int32_t offset = 0;    // from the source to the target
};

TimeSchedule follow_paths(const StepNetwork& network, const EdgeTimes& times,
                          std::vector<Travelling> travelling) {
  TimeSchedule made;
  std::vector<double> free(network.limits.size(), 0), work(network.limits.size(), 0);
  for (const Travelling& it : travelling)
    for (const std::int32_t arc : *it.arcs)
      for (const std::int32_t limit : times.limits[at(arc)]) work[at(limit)] += times.busy[at(limit)];
  std::priority_queue<double, std::vector<double>, std::greater<>> events;
  using Arrival = std::pair<double, std::size_t>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < travelling.size(); ++i) ready.push_back(i);
  events.push(0);
  double now = -1;
  while (!events.empty()) {
    const double next = events.top();
    events.pop();
    if (!is_later(next, now)) continue;
    now = next;
    while (!arrivals.empty() && !is_later(arrivals.top().first, now)) {
      ready.push_back(arrivals.top().second);
      arrivals.pop();
    }
    // The way that is left, what its cables still have to carry, then who is as far apart: rotations of
    // all devices together share no cable.
    const auto rank = [&](std::size_t i) {
      const Travelling& it = travelling[i];
      double crowded = 0;
      for (std::size_t a = it.next; a < it.arcs->size(); ++a)
        for (const std::int32_t limit : times.limits[at((*it.arcs)[a])])
          crowded = std::max(crowded, work[at(limit)]);
      return std::tuple(-(crowded + it.to_go[it.next]), it.offset, it.chunk);
    };
    std::vector<std::pair<decltype(rank(0)), std::size_t>> ranked;
    for (const std::size_t i : ready) {
      const auto& limits = times.limits[at((*travelling[i].arcs)[travelling[i].next])];
      if (std::ranges::none_of(limits, [&](std::int32_t limit) { return is_later(free[at(limit)], now); }))
        ranked.emplace_back(rank(i), i);
    }
    std::ranges::sort(ranked);
    std::vector<char> gone(travelling.size(), 0);
    for (const auto& [key, i] : ranked) {
      Travelling& it = travelling[i];
      const std::int32_t arc = (*it.arcs)[it.next];
      const auto& limits = times.limits[at(arc)];
      if (std::ranges::any_of(limits, [&](std::int32_t limit) { return is_later(free[at(limit)], now); }))
        continue;
      const TimeSend sent{now, now + times.takes[at(arc)], arc, it.chunk};
      for (const std::int32_t limit : limits) {
        free[at(limit)] = now + times.busy[at(limit)];
        work[at(limit)] -= times.busy[at(limit)];
        events.push(free[at(limit)]);
      }
      made.sends.push_back(sent);
      made.finish = std::max(made.finish, sent.arrives);
      gone[i] = 1;
      if (++it.next == it.arcs->size()) continue;
      arrivals.emplace(sent.arrives, i);
      events.push(sent.arrives);
    }
    std::erase_if(ready, [&](std::size_t i) { return gone[i] != 0; });
  }
  std::ranges::sort(made.sends);
  return made;
}

}  // namespace

Result<AllToAll> bound_all_to_all(const cluster::Topology& topology, const Deadline& deadline) {
  WEFT_TRY(wires, wires_of(topology));
  const ConcurrentFlow flow = find_concurrent_flow(flow_network(wires), kFlowGap, deadline, FlowPaths::no);
  if (!(flow.rate > 0))
    return user_error("time ran out before an all_to_all was bounded", "give it more time");
  return AllToAll{flow.bound * wires.gpus, flow.rate * wires.gpus};
}

std::vector<std::size_t> deal_paths(const StepNetwork& network, const ConcurrentFlow& flow,
                                    std::int32_t cut) {
  const FlowNetwork graph = flow_network(network);
  return Dealer(graph, flow).deal(network.devices, cut);
}

AllToAllSchedule schedule_all_to_all(const StepNetwork& network, const ConcurrentFlow& flow, std::int32_t cut,
                                     double chunk_bytes) {
  AllToAllSchedule made;
  made.question = {collective::Kind::all_to_all, 0, cut * network.devices, 1, 1};
  const std::vector<std::size_t> chosen = deal_paths(network, flow, cut);
  const EdgeTimes times(network, chunk_bytes);
  std::vector<Travelling> travelling;
  for (std::size_t chunk = 0; chunk < chosen.size(); ++chunk) {
    if (chosen[chunk] == flow.paths.size()) continue;  // for oneself
    const FlowPath& path = flow.paths[chosen[chunk]];
    Travelling it{static_cast<std::int32_t>(chunk), &path.arcs, 0,
                  std::vector<double>(path.arcs.size() + 1, 0),
                  (path.to - path.from + network.devices) % network.devices};
    for (std::size_t a = path.arcs.size(); a-- > 0;)
      it.to_go[a] = it.to_go[a + 1] + times.takes[at(path.arcs[a])];
    travelling.push_back(std::move(it));
  }
  made.schedule = follow_paths(network, times, std::move(travelling));
  const auto fault =
      first_fault(network, step_problem(made.question, network.devices), chunk_bytes, made.schedule);
  WEFT_CHECK(!fault, fault ? *fault : "");
  return made;
}

}  // namespace weft::synthesis
