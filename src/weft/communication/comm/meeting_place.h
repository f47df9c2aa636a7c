// weft/communication/comm/meeting_place.h -- where a group that grows meets its newcomers.
//
//   "10.0.0.1:29600"   rank 0 of the group listens there
//   "spring"           a name on this machine, known to this user alone
//
// Both sides prove that they know the same secret.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/communication/transport/rendezvous.h"

namespace weft::comm {

struct MeetingPlace {
  std::string where;
  std::string secret;                    // empty: the job's, as the environment has it
  std::chrono::milliseconds timeout{0};  // 0: that of the group; a newcomer: 30 s
};

// What a rank brings there. Fails where the place is none.
Result<transport::Rendezvous> rendezvous_at(const MeetingPlace& place, std::int32_t rank, std::int32_t ranks);

}  // namespace weft::comm
