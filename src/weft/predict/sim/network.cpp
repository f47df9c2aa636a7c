#include "weft/predict/sim/network.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::sim {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

template <class T>
T& at(std::vector<T>& items, std::int32_t index) {
  return items[static_cast<std::size_t>(index)];
}

}  // namespace

Network::Network(const cluster::Topology& topology) : carried_(topology.links.size(), 0) {
  const auto add_wire = [&](double capacity) {
    wires_.emplace_back().capacity = capacity;
    return static_cast<std::int32_t>(wires_.size() - 1);
  };
  for (const cluster::DirectedLink& link : topology.links) {
    const auto l = static_cast<std::int32_t>(wire_of_link_.size());
    const bool second = link.shares_with >= 0 && link.shares_with < l;
    wire_of_link_.push_back(second ? at(wire_of_link_, link.shares_with) : add_wire(link.bytes_per_second));
    ends_of_link_.emplace_back(link.from, link.to);
  }
  for (const cluster::Node& node : topology.nodes)
    wire_of_node_.push_back(node.bytes_per_second > 0 ? add_wire(node.bytes_per_second) : -1);
}

std::int32_t Network::add_route(std::span<const std::int32_t> links) {
  Route& route = routes_.emplace_back();
  route.links.assign(links.begin(), links.end());
  for (const std::int32_t link : links) {
    route.wires.push_back(at(wire_of_link_, link));
    // A node's limit applies to forwarded traffic, not to traffic that begins or ends there.
    if (link != links.back())
      if (const std::int32_t node = at(wire_of_node_, at(ends_of_link_, link).second); node >= 0)
        route.wires.push_back(node);
  }
  route.narrowest = kForever;
  for (const std::int32_t wire : route.wires)
    route.narrowest = std::min(route.narrowest, at(wires_, wire).capacity);
  return static_cast<std::int32_t>(routes_.size() - 1);
}

void Network::touch(std::int32_t wire) {
  if (at(wires_, wire).changed) return;
  at(wires_, wire).changed = true;
  changed_.push_back(wire);
}

std::int32_t Network::start(double now, std::int32_t route, double bytes, double fastest) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const std::int32_t number = free_.back();
  free_.pop_back();
  Flow& flow = at(flows_, number);
  const Route& way = at(routes_, route);
  flow.route = route;
  flow.bytes = flow.total = bytes;
  flow.since = now;
  flow.pace = 0;
  flow.fastest = std::min(fastest, way.narrowest);
  flow.places.clear();
  for (std::size_t w = 0; w < way.wires.size(); ++w) {
    Wire& wire = at(wires_, way.wires[w]);
    flow.places.push_back(static_cast<std::int32_t>(wire.users.size()));
    wire.users.push_back({number, static_cast<std::int32_t>(w)});
    wire.wanted += flow.fastest;
    if (binds(wire)) touch(way.wires[w]);
  }
  fresh_.push_back(number);
  return number;
}

void Network::finish(std::int32_t number) {
  Flow& flow = at(flows_, number);
  const Route& way = at(routes_, flow.route);
  for (std::size_t w = 0; w < way.wires.size(); ++w) {
    Wire& wire = at(wires_, way.wires[w]);
    if (binds(wire)) touch(way.wires[w]);
    const User last = wire.users.back();
    at(wire.users, flow.places[w]) = last;
    at(flows_, last.flow).places[static_cast<std::size_t>(last.wire)] = flow.places[w];
    wire.users.pop_back();
    // An empty sum is exactly zero, whatever the rounding.
    wire.wanted = wire.users.empty() ? 0 : wire.wanted - flow.fastest;
  }
  for (const std::int32_t link : way.links) at(carried_, link) += flow.total;
  ++flow.turn;
  flow.route = -1;
  free_.push_back(number);
}

void Network::set_pace(double now, std::int32_t number, double pace) {
  Flow& flow = at(flows_, number);
  if (flow.pace > 0) {
    if (std::abs(pace - flow.pace) <= 1e-12 * pace) return;
    flow.bytes = std::max(0.0, flow.bytes - flow.pace * (now - flow.since));
  }
  flow.since = now;
  flow.pace = pace;
  ends_.push_back({pace < kForever ? now + flow.bytes / pace : now, number, ++flow.turn});
  std::push_heap(ends_.begin(), ends_.end());
}

// Adds a flow to the sharing, and the bottleneck wires on its route.
void Network::reach(std::int32_t number) {
  Flow& flow = at(flows_, number);
  if (flow.seen == shares_ || flow.route < 0) return;
  flow.seen = shares_;
  flow.open = true;
  sharing_flows_.push_back(number);
  for (const std::int32_t w : at(routes_, flow.route).wires) {
    Wire& wire = at(wires_, w);
    if (!binds(wire)) continue;
    if (wire.seen != shares_) {
      wire.seen = shares_;
      wire.left = wire.capacity;
      wire.open = 0;
      sharing_wires_.push_back(w);
    }
    ++wire.open;
  }
}

void Network::settle(double now) {
  if (changed_.empty() && fresh_.empty()) return;
  ++shares_;
  sharing_wires_.clear();
  sharing_flows_.clear();
  for (const std::int32_t flow : fresh_) reach(flow);
  for (const std::int32_t w : changed_) {
    at(wires_, w).changed = false;
    for (const User& user : at(wires_, w).users) reach(user.flow);
  }
  // reach() appends to sharing_wires_ in this loop.
  for (std::size_t i = 0; i < sharing_wires_.size(); ++i)
    for (const User& user : at(wires_, sharing_wires_[i]).users) reach(user.flow);
  fresh_.clear();
  changed_.clear();
  share(now);
  // Removes stale end events, which would accumulate if rates change often.
  if (ends_.size() > 4 * flows_.size() + 64) {
    std::erase_if(ends_, [&](const End& end) { return at(flows_, end.flow).turn != end.turn; });
    std::make_heap(ends_.begin(), ends_.end());
  }
}

// Raises the rates of all flows in the sharing together. A flow stops at its maximum rate, and so
// do all flows on a saturated wire. The rate at which a wire saturates only rises as flows on it
// stop. So a heap entry may be stale: one that has risen is pushed again.
void Network::share(double now) {
  const auto by_fastest = [&](std::int32_t a, std::int32_t b) {
    const double left = at(flows_, a).fastest, right = at(flows_, b).fastest;
    return left != right ? left < right : a < b;
  };
  if (sharing_wires_.empty()) {
    for (const std::int32_t flow : sharing_flows_) set_pace(now, flow, at(flows_, flow).fastest);
    return;
  }
  std::sort(sharing_flows_.begin(), sharing_flows_.end(), by_fastest);
  filling_.clear();
  const auto full_at = [&](const Wire& wire) { return std::max(0.0, wire.left) / wire.open; };
  const auto later = [](const Filling& a, const Filling& b) {
    return a.pace != b.pace ? a.pace > b.pace : a.wire > b.wire;
  };
  for (const std::int32_t w : sharing_wires_) filling_.push_back({full_at(at(wires_, w)), w});
  std::make_heap(filling_.begin(), filling_.end(), later);

  const auto stop = [&](std::int32_t number, double pace) {
    Flow& flow = at(flows_, number);
    flow.open = false;
    for (const std::int32_t w : at(routes_, flow.route).wires) {
      Wire& wire = at(wires_, w);
      if (wire.seen != shares_) continue;
      wire.left -= pace;
      --wire.open;
    }
    // Keep the rate positive despite rounding, or the flow would never end.
    set_pace(now, number, std::max(pace, 1e-9 * flow.fastest));
  };
  auto slowest = sharing_flows_.begin();
  while (true) {
    while (slowest != sharing_flows_.end() && !at(flows_, *slowest).open) ++slowest;
    if (slowest == sharing_flows_.end()) return;
    const double own = at(flows_, *slowest).fastest;
    bool filled = false;
    while (!filled && !filling_.empty() && filling_.front().pace < own) {
      std::pop_heap(filling_.begin(), filling_.end(), later);
      const Filling top = filling_.back();
      filling_.pop_back();
      const Wire& wire = at(wires_, top.wire);
      if (wire.open == 0) continue;
      const double pace = full_at(wire);
      if (pace > top.pace * (1 + 1e-12)) {
        filling_.push_back({pace, top.wire});
        std::push_heap(filling_.begin(), filling_.end(), later);
        continue;
      }
      filled = true;
      for (const User& user : wire.users)
        if (at(flows_, user.flow).open) stop(user.flow, pace);
    }
    if (!filled) stop(*slowest, own);
  }
}

std::optional<std::pair<double, std::int32_t>> Network::next() {
  while (!ends_.empty() && at(flows_, ends_.front().flow).turn != ends_.front().turn) {
    std::pop_heap(ends_.begin(), ends_.end());
    ends_.pop_back();
  }
  if (ends_.empty()) return std::nullopt;
  return std::pair(ends_.front().time, ends_.front().flow);
}

}  // namespace weft::sim
