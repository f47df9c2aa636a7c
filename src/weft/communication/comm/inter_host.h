// weft/communication/comm/inter_host.h -- the inter-host part of an algorithm: what goes from host to host.
//
//   host 0: ranks 0 1   host 1: ranks 2 3        moves 0->1, 1->3, 3->2: one of them is inter-host
//
// Ranks lie on hosts in order, as many on each.
#pragma once
#include <cstdint>

#include "weft/collectives/chunks/moves.h"

namespace weft::comm {

struct InterHost {
  std::int32_t steps = 0;  // inter-host moves one after the other, at most
  // Of a wire whose data is still to leave the host: how many inter-host moves, at most, it waits for before
  // it has carried the last of a piece. The next piece starts only then.
  std::int32_t in_turn = 0;
  double wire = 0;  // shares of the message that leave the host which sends most
};

// REQUIRES: hosts divides the ranks.
InterHost inter_host_of(const collective::Moves& moves, std::int32_t hosts);

}  // namespace weft::comm
