// weft/communication/transport/bootstrap.h -- bootstrap at rank 0: all ranks connect, or none.
//
//   rank 2             rank 0
//   hello         ──▶            checked: equal number of ranks, no duplicates
//                 ◀──  waiting   ranks still missing, after each arrival
//                 ◀──  table     when all have arrived
//   (mesh: a link to every other rank, see mesh.h)
//   ready         ──▶
//                 ◀──  go        when all are ready
//
// At any time either side may send `failed` with the reason, which rank 0 forwards to all ranks. A
// rank that exits during bootstrap is detected by rank 0 at once. So all ranks fail together and
// report the same reason.
#pragma once
#include <chrono>
#include <string>

#include "weft/base/result.h"
#include "weft/communication/transport/mesh.h"
#include "weft/communication/transport/process_job.h"

namespace weft::transport {

struct BootstrapPlan {
  BootstrapMember self;
  MeshListeners doors;
  std::string secret;
  std::chrono::milliseconds timeout{30'000};
  Traffic traffic = Traffic::plain;
};

// Rank 0, with a listening socket; `local`: it is a Unix socket.
Result<Circle> bootstrap_root(BootstrapPlan plan, tcp::Socket listener, bool local);

// Any other rank, which connects to rank 0 by `dial`; `where` is for messages: "127.0.0.1:29500".
Result<Circle> bootstrap_client(BootstrapPlan plan, Dial dial, const std::string& where);

}  // namespace weft::transport
