#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "weft/parallel/partition/two_stages.h"

namespace weft::partition {
namespace {

// A pass or a transfer of a micro-batch, and what it does it on.
struct Event {
  enum class Kind { forward0, send_ahead, forward1, backward1, send_back, backward0 } kind;
  std::int32_t micro_batch = 0;
  auto operator<=>(const Event&) const = default;
};

// The order in which a stage runs its passes: so many forwards, then backward and forward in turn.
std::vector<Event> passes(Event::Kind forward, Event::Kind backward, std::int32_t ahead, std::int32_t count) {
  std::vector<Event> order;
  std::int32_t forwards = 0;
  for (; forwards < std::min(ahead, count); ++forwards) order.push_back({forward, forwards});
  for (std::int32_t backwards = 0; backwards < count; ++backwards) {
    order.push_back({backward, backwards});
    if (forwards < count) order.push_back({forward, forwards++});
  }
  return order;
}

}  // namespace

Result<double> judge(const Profile& profile, const Step& step, const std::vector<ReplicatedStage>& stages) {
  std::vector<std::int32_t> stage_of(profile.nodes.size(), -1);
  double forward[2] = {}, backward[2] = {}, reduce[2] = {};
  std::int32_t devices = 0;
  if (stages.empty() || stages.size() > 2)
    return user_error(fmt::format("expected one or two stages, found {}", stages.size()));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double replicas = stages[i].replicas;
    double parameters = 0;
    for (const std::int32_t node : stages[i].nodes) {
      const ProfileNode& layer = profile.nodes.at(slot(node));
      if (stage_of[slot(node)] >= 0)
        return user_error(fmt::format("expected {} in one stage, found two", layer.id));
      stage_of[slot(node)] = static_cast<std::int32_t>(i);
      forward[i] += layer.forward * step.micro_batch / replicas;
      backward[i] += layer.backward * step.micro_batch / replicas;
      parameters += layer.parameters;
    }
    reduce[i] = 1000 * 2 * (replicas - 1) / replicas * parameters / step.bandwidth;
    devices += stages[i].replicas;
  }
  if (devices > step.devices)
    return user_error(fmt::format("expected at most {} devices, found {}", step.devices, devices));
  if (const auto none = std::ranges::find(stage_of, -1); none != stage_of.end())
    return user_error(fmt::format("expected node {} in a stage, found it in none",
                                  profile.nodes[static_cast<std::size_t>(none - stage_of.begin())].id));
  if (stages.size() == 1) return step.micro_batches * (forward[0] + backward[0]) + reduce[0];
  double bytes = 0;
  std::vector<bool> sent(profile.nodes.size());
  for (const auto& [from, to] : profile.edges) {
    if (stage_of[slot(from)] > stage_of[slot(to)])
      return user_error(fmt::format("expected edges to go forward, found {} -- {}",
                                    profile.nodes[slot(from)].id, profile.nodes[slot(to)].id));
    if (stage_of[slot(from)] == stage_of[slot(to)] || sent[slot(from)]) continue;
    sent[slot(from)] = true;
    bytes += profile.nodes[slot(from)].activations;
  }
  const double transfer =
      1000 * bytes * step.micro_batch / (step.bandwidth * std::min(stages[0].replicas, stages[1].replicas));
  // Four queues, each runs what is at its front as soon as what it needs has ended.
  using Kind = Event::Kind;
  const double takes[] = {forward[0], transfer, forward[1], backward[1], transfer, backward[0]};
  const Kind needs[] = {Kind::forward0, Kind::forward0,  Kind::send_ahead,
                        Kind::forward1, Kind::backward1, Kind::send_back};  // forward0 needs nothing
  std::vector<Event> queues[4] = {passes(Kind::forward0, Kind::backward0, 3, step.micro_batches),
                                  passes(Kind::forward1, Kind::backward1, 1, step.micro_batches),
                                  {},
                                  {}};
  for (std::int32_t i = 0; i < step.micro_batches; ++i) {
    queues[2].push_back({Kind::send_ahead, i});
    queues[3].push_back({Kind::send_back, i});
  }
  std::map<Event, double> ended;
  double free[4] = {};
  std::size_t next[4] = {};
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t queue = 0; queue < 4; ++queue)
      while (next[queue] < queues[queue].size()) {
        const Event event = queues[queue][next[queue]];
        const auto kind = static_cast<std::size_t>(event.kind);
        if (event.kind != Kind::forward0) {
          const auto needed = ended.find({needs[kind], event.micro_batch});
          if (needed == ended.end()) break;
          free[queue] = std::max(free[queue], needed->second);
        }
        free[queue] += takes[kind];
        ended[event] = free[queue];
        ++next[queue];
        moved = true;
      }
  }
  return std::max(free[0] + reduce[0], free[1] + reduce[1]);
}

}  // namespace weft::partition
