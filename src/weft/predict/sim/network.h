// weft/predict/sim/network.h -- how flows share wires.
//
//   0 ==a==> 1 ==b==> 2      a: 100 GB/s   flow 0 to 1                 60 GB/s
//                            b:  40 GB/s   flow 0 to 2, over a and b   40 GB/s, all that b has
//
// All flows grow at one pace until a wire is full; those on it stay as they are and the others grow on: no
// flow could be faster without slowing one that is no faster than it (max-min fairness). A flow has a
// fastest pace of its own besides, that of whoever copies.
//
// Only what can change is computed anew: a wire that could carry all its flows at their fastest binds nobody
// and is passed by, and what is not joined to a flow that came or went through wires that do bind keeps its
// pace. So a ring, where every link has a flow to itself, costs nothing but the events.
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

  // A way that flows can take, given by its links; none: bytes that stay on their device.
  std::int32_t add_route(std::span<const std::int32_t> links);

  // A flow of `bytes` from `now` on, never faster than `fastest` bytes per second (which may be infinite).
  // Its pace is known after settle().
  std::int32_t start(double now, std::int32_t route, double bytes, double fastest);
  // Takes a flow away; its number will be used again.
  void finish(std::int32_t flow);
  // Shares the wires anew after flows came and went.
  void settle(double now);

  // The next flow to end and when, if any flows.
  std::optional<std::pair<double, std::int32_t>> next();

  double pace(std::int32_t flow) const { return flows_[static_cast<std::size_t>(flow)].pace; }
  double bytes_carried(std::int32_t link) const { return carried_[static_cast<std::size_t>(link)]; }
  std::int64_t shares() const { return shares_; }  // how often settle() had something to compute

 private:
  // What flows compete for: a link, the two links of a half duplex cable, or a switch.
  struct User {
    std::int32_t flow, wire;  // which of the flow's wires this is
  };
  struct Wire {
    double capacity = 0;
    double wanted = 0;  // the sum of what its flows could take
    std::vector<User> users;
    double left = 0;        // while sharing: not given away yet, ...
    std::int32_t open = 0;  // ... and flows that still grow
    std::int64_t seen = 0;  // the last sharing that it took part in
    bool changed = false;
  };
  struct Flow {
    std::int32_t route = -1;
    double total = 0;
    double bytes = 0;  // left at `since`
    double since = 0;
    double pace = 0;  // 0: not known yet
    double fastest = 0;
    std::int32_t turn = 0;  // counts the events foreseen for this number; only the latest counts
    std::int64_t seen = 0;
    bool open = false;
    std::vector<std::int32_t> places;  // in users of its wires
  };
  struct Route {
    std::vector<std::int32_t> wires, links;
    double narrowest = 0;
  };
  struct End {
    double time;
    std::int32_t flow, turn;

    // Earliest first, equals by number, so that runs repeat exactly.
    friend bool operator<(const End& a, const End& b) {
      return a.time != b.time ? a.time > b.time : a.flow > b.flow;
    }
  };

  struct Filling {
    double pace;
    std::int32_t wire;
  };

  // Whether its flows could take more than it has. A little more is rounding.
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
  std::vector<std::int32_t> changed_, fresh_;  // wires, and flows that have no pace yet
  std::vector<std::int32_t> sharing_wires_, sharing_flows_;
  std::vector<Filling> filling_;
  std::int64_t shares_ = 0;
};

}  // namespace weft::sim
