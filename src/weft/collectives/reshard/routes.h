// weft/collectives/reshard/routes.h -- from which host to which hosts the elements of a reshard travel.
//
//   lot     the cells that the same hosts hold and the same others need, laid end to end
//   route   a stretch of a lot, the host that sends it, and how it goes on from host to host
//
//   few receivers: a chain. Each host but the last passes on what it receives, so none sends more than it
//   receives, and in chunks the last has all of it little after the first.
//
//   many: two trees, half of the stretch each. A host with others below it in one tree has none in the
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

struct Lot {
  std::vector<std::size_t> cells;
  std::vector<std::int64_t> begins;            // of each cell in the lot, and the end of the last one
  std::vector<std::int32_t> holders, needers;  // hosts, in order; no host is both

  std::int64_t elements() const { return begins.back(); }
};

struct Hop {
  std::int32_t from = 0, to = 0;  // hosts
  std::int32_t after = 0;         // so many hops from the sender, which is at 0
};

struct Route {
  std::size_t lot = 0;
  std::int64_t begin = 0, end = 0;
  std::vector<Hop> hops;

  std::int64_t elements() const { return end - begin; }
};

struct Routes {
  std::vector<Lot> lots;  // what a host needs and has already is in none
  std::vector<Route> routes;
  double lower_bound = 0;  // elements that the busiest host must send or receive
};

// `hosts`: of each device. Senders are balanced; where that makes more than `wanted_hops` and receivers are
// the slower side, as few send as keep up with them. Fails when there are too many hops even so.
Result<Routes> find_routes(std::span<const Cell> cells, std::span<const std::int32_t> hosts,
                           std::size_t wanted_hops);

}  // namespace weft::reshard
