// weft/collectives/one_sided/packet_turns.h -- who reads a packet comes after who wrote it, where it is known who that is.
#pragma once
#include <vector>

#include "weft/collectives/check/order_edges.h"
#include "weft/collectives/one_sided/memory_order.h"

namespace weft::collective {

// A packet read comes after its first writer of the run, where it is known who that is: the others then
// have read it there themselves.
void match_packets(const std::vector<MemoryNode>& nodes, std::vector<MemoryAccess>& accesses,
                   OrderEdges& edges);

}  // namespace weft::collective
