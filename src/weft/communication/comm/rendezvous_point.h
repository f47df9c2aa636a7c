// weft/communication/comm/rendezvous_point.h -- rendezvous address of a growing group and its new
// ranks.
//
//   "10.0.0.1:29600"   rank 0 of the group listens there
//   "spring"           a name on this machine, private to this user
//
// Both sides prove that they know the same secret.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/communication/transport/rendezvous.h"

namespace weft::comm {

struct RendezvousPoint {
  std::string where;
  std::string secret;                    // empty: the job's, from the environment
  std::chrono::milliseconds timeout{0};  // 0: that of the group, or 30 s for a new rank
};

// The rendezvous of a rank at `place`. Fails if the place is malformed.
Result<transport::Rendezvous> rendezvous_at(const RendezvousPoint& place, std::int32_t rank,
                                            std::int32_t ranks);

}  // namespace weft::comm
