// weft/collectives/reshard/senders.h -- divides replicated data among the hosts that can send it.
//
//   demand           held by hosts    a flow: demand -> one of its hosts -> at most L per host
//   a, 6 elements    0, 1             the least feasible L is the max over sets of hosts S of
//   b, 4 elements    0                (what only hosts of S hold) / |S|: here (6 + 4) / 2 = 5
//   host 0 sends all of b and 1 of a, host 1 sends 5 of a
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace weft::reshard {

struct Demand {
  std::int64_t elements = 0;
  std::vector<std::int32_t> hosts;  // the holders: at least one
};

struct Balance {
  std::vector<std::vector<std::int64_t>> sent;  // per demand, parallel to its hosts
  double least = 0;                             // elements that the busiest host must send; a lower bound
};

// The busiest host sends less than one element above the minimum. If `allowed` is larger, hosts may
// send up to `allowed`, and the first hosts of a demand send it.
Balance balance_senders(std::span<const Demand> demands, std::int64_t allowed = 0);

}  // namespace weft::reshard
