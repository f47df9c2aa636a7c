// weft/collectives/reshard/senders.h -- which of its replicas sends how much of what several hosts hold.
//
//   demand           held by hosts    a flow: demand -> one of its hosts -> at most L of each host
//   a, 6 elements    0, 1             the least L that lets all through is max over sets of hosts S of
//   b, 4 elements    0                (what only hosts of S hold) / |S|: here (6 + 4) / 2 = 5
//   host 0 sends all of b and 1 of a, host 1 sends 5 of a
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace weft::reshard {

struct Demand {
  std::int64_t elements = 0;
  std::vector<std::int32_t> hosts;  // that hold it: at least one
};

struct Balance {
  std::vector<std::vector<std::int64_t>> sent;  // of each demand, by its hosts in their order
  double least = 0;                             // elements that the busiest host must send; a lower bound
};

// The busiest host sends less than one element more than it must. Or up to `allowed`, where that is more:
// then the first hosts of a demand send it.
Balance balance_senders(std::span<const Demand> demands, std::int64_t allowed = 0);

}  // namespace weft::reshard
