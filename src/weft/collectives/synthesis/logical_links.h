// weft/collectives/synthesis/logical_links.h -- links from device to device, over whatever switches lie between.
//
//   0 --7--> [hub] --7--> 1..7        0 --1--> 1, 0 --1--> 2, ... 0 --1--> 7
//
// Switches go one by one: something that comes in at one side and leaves at another becomes a link past the
// switch ("splitting off"), as much of it as leaves every device reachable at full rate. What bounds that
// are cuts, and so max-flows; one flow to every device is kept and mended, so that most answers are at hand.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/optimum.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

// A share of a logical link and the links of the topology it runs over, in order.
struct Lane {
  Amount amount = 0;
  std::vector<std::int32_t> links;
};

struct LogicalLink {
  std::int32_t from = 0, to = 0;  // devices
  Amount capacity = 0;
  std::vector<Lane> lanes;  // whose amounts add up to the capacity
};

struct LogicalLinks {
  std::int32_t gpus = 0;
  Amount scale = 1;  // capacities are those of the wires, times this
  std::vector<LogicalLink> links;
  bool whole = true;  // else what it can carry may lie below the optimum
};

// Capacities are whole at rate.under times those of the wires, where each root sends rate.over to all.
// REQUIRES: rate is at most find_optimum(wires, roots).rate
LogicalLinks remove_switches(const Wires& wires, const std::vector<std::int32_t>& roots, Ratio rate,
                             const Deadline& deadline = {});

}  // namespace weft::synthesis
