// weft/collectives/synthesis/route_book.h -- the ways that a program must ask for, numbered.
//
//   0 -> 3 over links 4 9      number 0: the shortest is link 2
//   0 -> 1 over link 0         none: whatever the channel, this is the shortest
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "weft/plan/cluster/routes.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

using Routes = std::vector<std::vector<std::int32_t>>;  // links of the topology, in the order they are passed

class RouteBook {
 public:
  // REQUIRES: cluster::check(topology); it must outlive this.
  explicit RouteBook(const cluster::Topology& topology) : shortest_(topology) {}

  // -1: no program need ask for it.
  std::int32_t number(std::int32_t from, std::int32_t to, const std::vector<std::int32_t>& links);
  Routes take() { return std::move(routes_); }

 private:
  cluster::Routes shortest_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>>
      only_;  // where channels have no choice
  std::map<std::vector<std::int32_t>, std::int32_t> numbers_;
  Routes routes_;
};

}  // namespace weft::synthesis
