// weft/collectives/collective/packet_turns.h -- who reads a packet comes after who wrote it, where it is known who that is.
#pragma once
#include <vector>

#include "weft/collectives/collective/memory_order.h"
#include "weft/collectives/collective/order_edges.h"

namespace weft::collective {

// A packet read comes after its first writer of the run, where it is known who that is: the others then
// have read it there themselves.
void match_packets(const std::vector<MemoryNode>& nodes, std::vector<MemoryAccess>& accesses,
                   OrderEdges& edges);

}  // namespace weft::collective
