// weft/collectives/synthesis/logical_links.h -- replaces switches by links from device to device.
//
//   0 --7--> [hub] --7--> 1..7        0 --1--> 1, 0 --1--> 2, ... 0 --1--> 7
//
// Switches are removed one by one: capacity that enters at one side and leaves at another becomes a
// link past the switch ("splitting off"), as much as keeps every device reachable at full rate. The
// limits are cuts, found by max-flow. One flow per device is kept and repaired incrementally, which
// answers most queries.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/optimum.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

// A share of a logical link, and the topology links of its path, in order.
struct Lane {
  Amount amount = 0;
  std::vector<std::int32_t> links;
};

struct LogicalLink {
  std::int32_t from = 0, to = 0;  // devices
  Amount capacity = 0;
  std::vector<Lane> lanes;  // amounts add up to the capacity
};

struct LogicalLinks {
  std::int32_t gpus = 0;
  Amount scale = 1;  // capacities are those of the wires times this
  std::vector<LogicalLink> links;
  bool whole = true;  // false: the links may carry less than the optimum
};

// Capacities are integers after scaling the wires by rate.under; each root then sends rate.over to
// all.
// REQUIRES: rate is at most find_optimum(wires, roots).rate
LogicalLinks remove_switches(const Wires& wires, const std::vector<std::int32_t>& roots, Ratio rate,
                             const Deadline& deadline = {});

}  // namespace weft::synthesis
