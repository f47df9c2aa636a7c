// weft/predict/sim/network.h -- how flows share wires.
//
//   0 ==a==> 1 ==b==> 2      a: 100 GB/s   flow 0 to 1                 60 GB/s
//                            b:  40 GB/s   flow 0 to 2, over a and b   40 GB/s, all that b has
//
// Progressive filling: all flow rates grow together until a wire is saturated; its flows stop
// growing and the others continue. The result is max-min fair: no flow could be faster without
// slowing one that is no faster. A flow also has a maximum rate, that of the sender's copy.
//
// Only rates that can change are recomputed. A wire that could carry all its flows at their maximum
// rates is no bottleneck and is skipped. Flows that no chain of bottlenecks connects to a started
// or finished flow keep their rates. So a ring, where every link has its own flow, costs nothing
// but the events.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/plan/cluster/topology.h"

namespace weft::sim {

class Network {
 public:
  // REQUIRES: cluster::check(topology)
  explicit Network(const cluster::Topology& topology);

  // A route over the given links; without links, the bytes stay on their device.
  std::int32_t add_route(std::span<const std::int32_t> links);

  // Starts a flow of `bytes` at `now`, with at most `fastest` bytes per second (which may be
  // infinite). settle() computes its rate.
  std::int32_t start(double now, std::int32_t route, double bytes, double fastest);
  // Removes a flow; its number will be reused.
  void finish(std::int32_t flow);
  // Recomputes rates after flows started and finished.
  void settle(double now);

  // The next flow to end and when; empty if there are no flows.
  std::optional<std::pair<double, std::int32_t>> next();

  double pace(std::int32_t flow) const { return flows_[static_cast<std::size_t>(flow)].pace; }
  double bytes_carried(std::int32_t link) const { return carried_[static_cast<std::size_t>(link)]; }
  std::int64_t shares() const { return shares_; }  // how often settle() recomputed rates

 private:
  // A flow's entry at a wire. Flows compete for wires: a link, both links of a half-duplex cable,
  // or a switch.
  struct User {
    std::int32_t flow, wire;  // index of the wire in the flow's route
  };
  struct Wire {
    double capacity = 0;
    double wanted = 0;  // the sum of its flows' maximum rates
    std::vector<User> users;
    double left = 0;        // in share(): capacity not assigned yet
    std::int32_t open = 0;  // in share(): flows that still grow
    std::int64_t seen = 0;  // the last share() that included it
    bool changed = false;
  };
  struct Flow {
    std::int32_t route = -1;
    double total = 0;
    double bytes = 0;  // remaining at `since`
    double since = 0;
    double pace = 0;  // 0: not known yet
    double fastest = 0;
    std::int32_t turn = 0;  // counts the end events of this number; only the latest is valid
    std::int64_t seen = 0;
    bool open = false;
    std::vector<std::int32_t> places;  // its index in `users` of each of its wires
  };
  struct Route {
    std::vector<std::int32_t> wires, links;
    double narrowest = 0;
  };
  struct End {
    double time;
    std::int32_t flow, turn;

    // Earliest first, ties by number, so that runs are deterministic.
    friend bool operator<(const End& a, const End& b) {
      return a.time != b.time ? a.time > b.time : a.flow > b.flow;
    }
  };

  struct Filling {
    double pace;
    std::int32_t wire;
  };

  // Whether the wire is a bottleneck: its flows could use more than its capacity, beyond rounding.
  bool binds(const Wire& wire) const { return wire.wanted > wire.capacity * (1 + 1e-9); }
  void touch(std::int32_t wire);
  void reach(std::int32_t flow);
  void set_pace(double now, std::int32_t flow, double pace);
  void share(double now);

  std::vector<Wire> wires_;
  std::vector<std::int32_t> wire_of_link_, wire_of_node_;  // -1: a node without a limit
  std::vector<std::pair<std::int32_t, std::int32_t>> ends_of_link_;
  std::vector<double> carried_;
  std::vector<Route> routes_;
  std::vector<Flow> flows_;
  std::vector<std::int32_t> free_;
  std::vector<End> ends_;                      // a heap
  std::vector<std::int32_t> changed_, fresh_;  // wires, and flows that have no rate yet
  std::vector<std::int32_t> sharing_wires_, sharing_flows_;
  std::vector<Filling> filling_;
  std::int64_t shares_ = 0;
};

}  // namespace weft::sim
