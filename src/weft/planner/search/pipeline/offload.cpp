#include "weft/planner/search/pipeline/offload.h"

#include <algorithm>

namespace weft::search {

void offload_to_host(PartCosts& costs) {
  for (PartCost& cost : costs) {
    const double down = cost.gradients / kHostLinkBytesPerSecond,
                 up = cost.parameters / kHostLinkBytesPerSecond;
    // Reads and writes states, reads gradients, writes parameters.
    const double there = (2 * cost.optimizer + cost.gradients + cost.parameters) / kHostMemoryBytesPerSecond;
    cost.update = std::max({down, up, there});
    cost.on_host = cost.optimizer;
    cost.optimizer = 0;
  }
}

}  // namespace weft::search
