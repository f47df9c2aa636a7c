// weft/collectives/reshard/routes.h -- routes the elements of a reshard from host to host.
//
//   group   the cells with the same holding hosts and the same other needing hosts, concatenated
//   route   a range of a group, the host that sends it, and the hops that forward it
//
//   few receivers: a chain. Each host but the last forwards what it receives, so none sends more than it
//   receives. With chunks the last host completes shortly after the first.
//
//   many: two trees, each for half of the range. A host with children in one tree is a leaf of the
//   other, so again it sends no more than it receives (Sanders, Speck, Traff: Two-tree algorithms, 2009).
//
//             4                       5            The second tree is the first with every host moved by
//         2       6               3       7        one: the odd ones take the places of the even ones.
//       1   3   5   7           2   4   6   1
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/reshard/cells.h"

namespace weft::reshard {

struct CellGroup {
  std::vector<std::size_t> cells;
  std::vector<std::int64_t> begins;            // offset of each cell in the group, then the end
  std::vector<std::int32_t> holders, needers;  // hosts, sorted; disjoint

  std::int64_t elements() const { return begins.back(); }
};

struct Hop {
  std::int32_t from = 0, to = 0;  // hosts
  std::int32_t after = 0;         // number of hops from the sender, which is at 0
};

struct Route {
  std::size_t cell_group = 0;
  std::int64_t begin = 0, end = 0;
  std::vector<Hop> hops;

  std::int64_t elements() const { return end - begin; }
};

struct Routes {
  std::vector<CellGroup> cell_groups;  // excludes data that a host needs and already holds
  std::vector<Route> routes;
  double lower_bound = 0;  // elements that the busiest host must send or receive
};

// `hosts`: per device. Balances the senders. If that gives more than `wanted_hops` and the
// receivers are the bottleneck, it uses only as many senders as needed to keep up. Fails if there
// are still too many hops.
Result<Routes> find_routes(std::span<const Cell> cells, std::span<const std::int32_t> hosts,
                           std::size_t wanted_hops);

}  // namespace weft::reshard
