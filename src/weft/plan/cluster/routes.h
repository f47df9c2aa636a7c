// weft/plan/cluster/routes.h -- the route that bytes take from one device to another.
//
// The route with the lowest latency, then the fewest hops, then the widest bottleneck link. `which`
// selects among routes that are equal in all three, round-robin at every fork, so that callers who
// increment it spread over parallel links, network cards and switches.
//
//      +--> 1 --+                 which = 0:  0 1 3
//   0 -+        +--> 3            which = 1:  0 2 3
//      +--> 2 --+                 which = 2:  0 1 3
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/plan/cluster/topology.h"

namespace weft::cluster {

// Caches the distances to the last target: query all routes to one target in a row.
class Routes {
 public:
  // REQUIRES: check(topology); it must outlive this.
  explicit Routes(const Topology& topology);

  // The links from node to node; empty if they are the same node, nullopt if there is no route.
  std::optional<std::vector<std::int32_t>> route(std::int32_t from, std::int32_t to, std::uint64_t which = 0);

 private:
  struct Distance {
    std::int64_t picoseconds = -1;  // an integer, so that sums do not depend on order; -1: unreachable
    std::int32_t hops = 0;
    double width = 0;  // bytes per second of the bottleneck link on the best route to the target
  };

  void measure(std::int32_t target);
  bool is_on_shortest_route(std::int32_t link) const;

  const Topology& topology_;
  std::vector<std::int64_t> picoseconds_;  // by link
  std::vector<std::int32_t> first_out_,
      out_;  // links that leave a node: out_[first_out_[n], first_out_[n + 1])
  std::vector<std::int32_t> first_in_, in_;
  std::vector<Distance> distances_;
  std::int32_t target_ = -1;
};

double latency(const Topology& topology, const std::vector<std::int32_t>& route);

}  // namespace weft::cluster
