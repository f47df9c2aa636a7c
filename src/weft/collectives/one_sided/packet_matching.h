// weft/collectives/one_sided/packet_matching.h -- orders packet reads after their writers, if known.
#pragma once
#include <vector>

#include "weft/collectives/check/order_edges.h"
#include "weft/collectives/one_sided/memory_order.h"

namespace weft::collective {

// Orders a packet read after its first writer of the run, if that is known: later writers have then
// read the packet themselves.
void match_packets(const std::vector<MemoryNode>& nodes, std::vector<MemoryAccess>& accesses,
                   OrderEdges& edges);

}  // namespace weft::collective
