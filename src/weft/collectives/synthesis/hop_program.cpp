#include "weft/collectives/synthesis/hop_program.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "weft/collectives/synthesis/index.h"

namespace weft::synthesis {
namespace {

using collective::Op;
using collective::Step;

constexpr double kApart = 1e-12;  // seconds; separates the messages of a connection in time

}  // namespace

void HopProgram::use(std::int32_t from, std::int32_t to, std::int32_t route, std::int64_t chunks) {
  const auto [found, is_new] =
      numbers_.try_emplace({from, to, route}, static_cast<std::int32_t>(lanes_.size()));
  if (is_new) lanes_.push_back({from, to, route});
  lanes_[at(found->second)].chunks += chunks;
}

// The lanes between two devices share their channels.
void HopProgram::make_connections() {
  const auto wanted = [&](const Lane& lane) {
    const double rate = static_cast<double>(lane.chunks) * pace_.chunk_bytes / pace_.seconds;
    return std::clamp(std::ceil(rate / pace_.connection_rate), 1.0, static_cast<double>(lane.chunks));
  };
  std::map<std::pair<std::int32_t, std::int32_t>, double> together;
  for (const Lane& lane : lanes_) together[{lane.from, lane.to}] += wanted(lane);
  for (Lane& lane : lanes_) {
    const double all = std::max<double>(together.at({lane.from, lane.to}), pace_.most_channels);
    lane.connections = std::max(1, static_cast<std::int32_t>(wanted(lane) * pace_.most_channels / all));
    lane.first = connections_;
    connections_ += lane.connections;
    lane.duration = std::max(pace_.seconds * lane.connections / static_cast<double>(lane.chunks),
                             pace_.chunk_bytes / pace_.block_rate);
  }
}

std::int32_t HopProgram::add(const Hop& hop) {
  const auto number = static_cast<std::int32_t>(hops_.size());
  hops_.push_back({hop, numbers_.at({hop.from, hop.to, hop.route})});
  hops_.back().place = hop.before >= 0 ? hops_[at(hop.before)].place : number;
  return number;
}

double HopProgram::seconds_of(const Planned& hop) const {
  return (lanes_[at(hop.lane)].duration + pace_.chunk_bytes / pace_.block_rate) * hop.hop.count +
         pace_.message_seconds;
}

// Visits the hops that deliver, or add to, the data that it sends.
template <class Visit>
void HopProgram::each_needed(const Planned& hop, Visit visit) const {
  for (std::int32_t needed = hop.hop.after; needed >= 0; needed = hops_[at(needed)].hop.before) visit(needed);
}

// The longer the path ahead of a hop, the earlier it is due.
void HopProgram::find_dues() {
  for (Planned& planned : hops_) planned.due = planned.hop.when * pace_.seconds;
  for (std::size_t h = hops_.size(); h-- > 0;)
    each_needed(hops_[h], [&](std::int32_t needed) {
      hops_[at(needed)].due = std::min(hops_[at(needed)].due, hops_[h].due - seconds_of(hops_[at(needed)]));
    });
}

// Simulates the run: each idle connection starts the ready hop that is due first.
void HopProgram::play() {
  std::vector<std::int32_t> waits(hops_.size(), 0);
  std::vector<std::vector<std::int32_t>> needed_by(hops_.size());
  for (std::size_t h = 0; h < hops_.size(); ++h)
    each_needed(hops_[h], [&](std::int32_t needed) {
      ++waits[h];
      needed_by[at(needed)].push_back(static_cast<std::int32_t>(h));
    });
  latest_.assign(hops_.size(), -1);
  using Ready = std::tuple<double, std::int32_t>;  // due, hop
  std::vector<std::priority_queue<Ready, std::vector<Ready>, std::greater<>>> ready(lanes_.size());
  std::vector<std::deque<std::int32_t>> idle(lanes_.size());  // connections, longest idle first
  std::vector<double> taken(at(connections_), 0);             // arrival of each connection's last message
  using Done = std::tuple<double, std::int32_t>;              // 2 * hop: sent, 2 * hop + 1: received
  std::priority_queue<Done, std::vector<Done>, std::greater<>> done;
  const auto start = [&](std::int32_t lane, double now) {
    auto& queue = ready[at(lane)];
    while (!idle[at(lane)].empty() && !queue.empty()) {
      const std::int32_t number = std::get<1>(queue.top());
      queue.pop();
      Planned& planned = hops_[at(number)];
      planned.connection = idle[at(lane)].front();
      idle[at(lane)].pop_front();
      planned.arrives = std::max(now + seconds_of(planned), taken[at(planned.connection)] + kApart);
      taken[at(planned.connection)] = planned.arrives;
      done.emplace(now + lanes_[at(lane)].duration * planned.hop.count, 2 * number);
      done.emplace(planned.arrives, 2 * number + 1);
    }
  };
  for (std::size_t l = 0; l < lanes_.size(); ++l)
    for (std::int32_t c = 0; c < lanes_[l].connections; ++c) idle[l].push_back(lanes_[l].first + c);
  for (std::size_t h = 0; h < hops_.size(); ++h)
    if (waits[h] == 0) ready[at(hops_[h].lane)].emplace(hops_[h].due, static_cast<std::int32_t>(h));
  for (std::size_t l = 0; l < lanes_.size(); ++l) start(static_cast<std::int32_t>(l), 0);
  while (!done.empty()) {
    const auto [now, what] = done.top();
    const std::int32_t number = what / 2;
    done.pop();
    Planned& planned = hops_[at(number)];
    if (what % 2 == 0) {
      idle[at(planned.lane)].push_back(planned.connection);
      start(planned.lane, now);
      continue;
    }
    order_.push_back(number);
    planned.earlier = std::exchange(latest_[at(planned.place)], number);
    for (const std::int32_t later : needed_by[at(number)]) {
      if (--waits[at(later)] > 0) continue;
      ready[at(hops_[at(later)].lane)].emplace(hops_[at(later)].due, later);
      start(hops_[at(later)].lane, now);
    }
  }
}

void HopProgram::write(collective::Program& program) {
  find_dues();
  play();
  struct Ends {
    std::int32_t from, to, sender, receiver;
  };
  std::vector<Ends> ends;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> channels;  // in use per pair of ranks
  for (const Lane& lane : lanes_)
    for (std::int32_t c = 0; c < lane.connections; ++c) {
      auto &sending = program.ranks[at(lane.from)].blocks, &receiving = program.ranks[at(lane.to)].blocks;
      const std::int32_t channel = channels[{lane.from, lane.to}]++;
      ends.push_back({lane.from, lane.to, static_cast<std::int32_t>(sending.size()),
                      static_cast<std::int32_t>(receiving.size())});
      sending.push_back({lane.to, -1, channel, {}});
      if (lane.route >= 0) sending.back().links = routes_[at(lane.route)];
      receiving.push_back({-1, lane.from, channel, {}});
      program.channels = std::max(program.channels, channel + 1);
    }
  const auto wait_for = [&](Step& step, std::int32_t hop) {
    if (hop < 0) return;
    const Planned& earlier = hops_[at(hop)];
    const Ends& there = ends[at(earlier.connection)];
    step.wait_block = there.receiver;
    step.wait_step = earlier.received;
    program.ranks[at(there.to)].blocks[at(there.receiver)].steps[at(earlier.received)].publishes = true;
  };
  for (const std::int32_t number : order_) {
    Planned& planned = hops_[at(number)];
    const Hop& hop = planned.hop;
    const Ends& end = ends[at(planned.connection)];
    auto& sending = program.ranks[at(end.from)].blocks[at(end.sender)].steps;
    auto& receiving = program.ranks[at(end.to)].blocks[at(end.receiver)].steps;
    Step send{Op::send, hop.source, hop.source};
    Step receive{hop.adds ? Op::receive_reduce_copy : Op::receive, hop.target, hop.target};
    send.count = receive.count = hop.count;
    if (hop.after >= 0) wait_for(send, latest_[at(hops_[at(hop.after)].place)]);
    wait_for(receive, planned.earlier);
    planned.received = static_cast<std::int32_t>(receiving.size());
    sending.push_back(send);
    receiving.push_back(receive);
  }
}

}  // namespace weft::synthesis
