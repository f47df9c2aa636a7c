// weft/communication/comm/inter_host.h -- the inter-host part of an algorithm: traffic between
// hosts.
//
//   host 0: ranks 0 1   host 1: ranks 2 3        moves 0->1, 1->3, 3->2: one of them is inter-host
//
// Ranks are numbered host by host, with equally many on each.
#pragma once
#include <cstdint>

#include "weft/collectives/chunks/moves.h"

namespace weft::comm {

struct InterHost {
  std::int32_t steps = 0;  // longest chain of inter-host moves
  // For connections whose data has yet to leave the host: the most inter-host moves that one waits
  // for before it has carried the last data of a slice. Only then does the next slice start.
  std::int32_t in_turn = 0;
  double wire = 0;  // share of the message that leaves the host that sends most
};

// REQUIRES: hosts divides the ranks.
InterHost inter_host_of(const collective::Moves& moves, std::int32_t hosts);

}  // namespace weft::comm
