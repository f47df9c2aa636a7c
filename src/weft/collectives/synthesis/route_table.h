// weft/collectives/synthesis/route_table.h -- numbers the routes that a program must request.
//
//   0 -> 3 over links 4 9      number 0: the shortest is link 2
//   0 -> 1 over link 0         none: this is the shortest path for every channel
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "weft/plan/cluster/routes.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

using Routes = std::vector<std::vector<std::int32_t>>;  // topology links, in path order

class RouteTable {
 public:
  // REQUIRES: cluster::check(topology); the topology must outlive this object.
  explicit RouteTable(const cluster::Topology& topology) : shortest_(topology) {}

  // -1: the default route, which need not be requested.
  std::int32_t number(std::int32_t from, std::int32_t to, const std::vector<std::int32_t>& links);
  Routes take() { return std::move(routes_); }

 private:
  cluster::Routes shortest_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>>
      only_;  // the shortest path, if it is the same for all channels
  std::map<std::vector<std::int32_t>, std::int32_t> numbers_;
  Routes routes_;
};

}  // namespace weft::synthesis
