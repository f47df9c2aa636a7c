// weft/plan/cluster/routes.h -- the way bytes take from one device to another.
//
// The shortest by latency, then by hops, then the one whose narrowest link is widest. Where several are
// equal in all of this, `which` takes turns at every fork, so that whoever counts up spreads over parallel
// links, cards and switches.
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

// Remembers the distances to the target asked for last: ask for all routes to one target in a row.
class Routes {
 public:
  // REQUIRES: check(topology); it must outlive this.
  explicit Routes(const Topology& topology);

  // The links from node to node, none when they are the same; nothing when there is no way at all.
  std::optional<std::vector<std::int32_t>> route(std::int32_t from, std::int32_t to, std::uint64_t which = 0);

 private:
  struct Distance {
    std::int64_t picoseconds = -1;  // whole, so that sums in any order are equal; -1: cannot be reached
    std::int32_t hops = 0;
    double width = 0;  // bytes per second of the narrowest link on the best way to the target
  };

  void measure(std::int32_t target);
  bool leads_on(std::int32_t link) const;

  const Topology& topology_;
  std::vector<std::int64_t> picoseconds_;  // of a link
  std::vector<std::int32_t> first_out_,
      out_;  // links that leave a node: out_[first_out_[n], first_out_[n + 1])
  std::vector<std::int32_t> first_in_, in_;
  std::vector<Distance> distances_;
  std::int32_t target_ = -1;
};

double latency(const Topology& topology, const std::vector<std::int32_t>& route);

}  // namespace weft::cluster
