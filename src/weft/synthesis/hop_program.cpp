#include "weft/synthesis/hop_program.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

namespace weft::synthesis {
namespace {

using collective::Op;
using collective::Step;

std::size_t nth(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

HopProgram::Link& HopProgram::link(std::int32_t from, std::int32_t to) {
  return links_[nth(numbers_.at({from, to}))];
}

void HopProgram::use(std::int32_t from, std::int32_t to, std::int64_t streams) {
  const auto [found, fresh] = numbers_.try_emplace({from, to}, static_cast<std::int32_t>(links_.size()));
  if (fresh) links_.push_back({from, to});
  links_[nth(found->second)].streams += streams;
}

void HopProgram::make_connections() {
  for (Link& link : links_) {
    const double rate = static_cast<double>(link.streams) * pace_.rate;
    const double most = std::min<double>(pace_.most_channels, static_cast<double>(link.streams) * pieces_);
    link.channels =
        static_cast<std::int32_t>(std::clamp(std::ceil(rate / pace_.connection_rate), 1.0, most));
    link.first = connections_;
    connections_ += link.channels;
    const double chunk_time =
        std::max(pace_.chunk_bytes * link.channels / rate, pace_.chunk_bytes / pace_.block_rate);
    for (std::int32_t c = 0; c < link.channels; ++c) durations_.push_back(chunk_time);
  }
}

std::int32_t HopProgram::connections_a_stream(const Link& link) const {
  return std::max(1, static_cast<std::int32_t>(link.channels / link.streams));
}

// The pieces of a stream go one after another over the same connections, so that none holds up another's.
void HopProgram::take_turn(std::int32_t from, std::int32_t to) {
  Link& taken = link(from, to);
  taken.turn = (taken.turn + connections_a_stream(taken)) % taken.channels;
}

std::int32_t HopProgram::add(const Hop& hop) {
  const Link& over = link(hop.from, hop.to);
  // A link with more connections than streams deals the pieces out as well.
  const std::int32_t shift = hop.piece % connections_a_stream(over);
  hops_.push_back({hop, over.first + (over.turn + shift) % over.channels});
  return static_cast<std::int32_t>(hops_.size()) - 1;
}

double HopProgram::seconds_of(const Planned& hop) const {
  return durations_[nth(hop.connection)] + pace_.chunk_bytes / pace_.block_rate + pace_.message_seconds;
}

// A piece is due one turn of all streams after the one before; what leads far must leave early.
void HopProgram::find_dues(double turn) {
  for (Planned& planned : hops_) planned.due = planned.hop.piece * turn;
  for (std::size_t h = hops_.size(); h-- > 0;) {
    const Planned& planned = hops_[h];
    for (const std::int32_t earlier : {planned.hop.after, planned.hop.before})
      if (earlier >= 0)
        hops_[nth(earlier)].due =
            std::min(hops_[nth(earlier)].due, planned.due - seconds_of(hops_[nth(earlier)]));
  }
}

// Finds when every hop starts if each connection takes what is due first of what is ready.
void HopProgram::play() {
  std::vector<std::int32_t> waits(hops_.size(), 0), first(hops_.size(), -1), next(2 * hops_.size(), -1);
  const auto follow = [&](std::int32_t hop, std::int32_t earlier, std::size_t slot) {
    if (earlier < 0) return;
    ++waits[nth(hop)];
    next[2 * nth(hop) + slot] = first[nth(earlier)];
    first[nth(earlier)] = 2 * hop + static_cast<std::int32_t>(slot);
  };
  for (std::size_t h = 0; h < hops_.size(); ++h) {
    follow(static_cast<std::int32_t>(h), hops_[h].hop.after, 0);
    follow(static_cast<std::int32_t>(h), hops_[h].hop.before, 1);
  }
  using Ready = std::tuple<double, std::int32_t>;  // due, hop
  std::vector<std::priority_queue<Ready, std::vector<Ready>, std::greater<>>> ready(nth(connections_));
  using Done = std::tuple<double, std::int32_t>;  // 2 * hop: sent, 2 * hop + 1: received
  std::priority_queue<Done, std::vector<Done>, std::greater<>> done;
  std::vector<bool> busy(nth(connections_), false);
  const auto start = [&](std::int32_t connection, double now) {
    auto& queue = ready[nth(connection)];
    if (busy[nth(connection)] || queue.empty()) return;
    const std::int32_t hop = std::get<1>(queue.top());
    queue.pop();
    busy[nth(connection)] = true;
    order_.push_back(hop);
    done.emplace(now + durations_[nth(connection)], 2 * hop);
    done.emplace(now + seconds_of(hops_[nth(hop)]), 2 * hop + 1);
  };
  for (std::size_t h = 0; h < hops_.size(); ++h)
    if (waits[h] == 0) ready[nth(hops_[h].connection)].emplace(hops_[h].due, static_cast<std::int32_t>(h));
  for (std::int32_t c = 0; c < connections_; ++c) start(c, 0);
  while (!done.empty()) {
    const auto [now, what] = done.top();
    const std::int32_t hop = what / 2;
    done.pop();
    if (what % 2 == 0) {
      busy[nth(hops_[nth(hop)].connection)] = false;
      start(hops_[nth(hop)].connection, now);
      continue;
    }
    for (std::int32_t entry = first[nth(hop)]; entry >= 0; entry = next[nth(entry)]) {
      const std::int32_t later = entry / 2;
      if (--waits[nth(later)] > 0) continue;
      ready[nth(hops_[nth(later)].connection)].emplace(hops_[nth(later)].due, later);
      start(hops_[nth(later)].connection, now);
    }
  }
}

void HopProgram::write(double turn, collective::Program& program) {
  find_dues(turn);
  play();
  struct Ends {
    std::int32_t from, to, sender, receiver;
  };
  std::vector<Ends> ends;
  for (const Link& each : links_)
    for (std::int32_t c = 0; c < each.channels; ++c) {
      auto &sending = program.ranks[nth(each.from)].blocks, &receiving = program.ranks[nth(each.to)].blocks;
      ends.push_back({each.from, each.to, static_cast<std::int32_t>(sending.size()),
                      static_cast<std::int32_t>(receiving.size())});
      sending.push_back({each.to, -1, c, {}});
      receiving.push_back({-1, each.from, c, {}});
      program.channels = std::max(program.channels, c + 1);
    }
  const auto wait_for = [&](Step& step, std::int32_t hop) {
    if (hop < 0) return;
    const Planned& earlier = hops_[nth(hop)];
    const Ends& there = ends[nth(earlier.connection)];
    step.wait_block = there.receiver;
    step.wait_step = earlier.received;
    program.ranks[nth(there.to)].blocks[nth(there.receiver)].steps[nth(earlier.received)].publishes = true;
  };
  for (const std::int32_t number : order_) {
    Planned& planned = hops_[nth(number)];
    const Hop& hop = planned.hop;
    const Ends& end = ends[nth(planned.connection)];
    auto& sending = program.ranks[nth(end.from)].blocks[nth(end.sender)].steps;
    auto& receiving = program.ranks[nth(end.to)].blocks[nth(end.receiver)].steps;
    Step send{Op::send, hop.source, hop.source};
    Step receive{hop.adds ? Op::receive_reduce_copy : Op::receive, hop.target, hop.target};
    wait_for(send, hop.after);
    wait_for(receive, hop.before);
    planned.received = static_cast<std::int32_t>(receiving.size());
    sending.push_back(send);
    receiving.push_back(receive);
  }
}

}  // namespace weft::synthesis
