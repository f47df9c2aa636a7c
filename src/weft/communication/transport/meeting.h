// weft/communication/transport/meeting.h -- ranks come together at rank 0: all of them, or none.
//
//   rank 2             rank 0
//   hello         ──▶            checked: the same number of ranks, none twice
//                 ◀──  waiting   who is missing still, whenever one has come
//                 ◀──  table     when all have come
//   (mesh: a line to every other rank, see mesh.h)
//   ready         ──▶
//                 ◀──  go        when all are ready
//
// At any moment either side may say `failed`, with the reason, which rank 0 passes on to everyone. A rank
// that ends in between is noticed by rank 0 at once. So all ranks fail together and say the same.
#pragma once
#include <chrono>
#include <string>

#include "weft/base/result.h"
#include "weft/communication/transport/mesh.h"
#include "weft/communication/transport/process_job.h"

namespace weft::transport {

struct MeetingPlan {
  Attendee self;
  Doors doors;
  std::string secret;
  std::chrono::milliseconds timeout{30'000};
  Traffic traffic = Traffic::plain;
};

// Rank 0, at a listening socket; `local`: it is a Unix socket.
Result<Circle> host_meeting(MeetingPlan plan, tcp::Socket listener, bool local);

// Another rank, which finds rank 0 by `dial`; `where` is for people: "127.0.0.1:29500".
Result<Circle> visit_meeting(MeetingPlan plan, Dial dial, const std::string& where);

}  // namespace weft::transport
