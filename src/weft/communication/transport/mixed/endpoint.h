// weft/communication/transport/mixed/endpoint.h -- a group that spans machines: shared memory
// within each, sockets between them.
//
//   machine a                 machine b
//   rank 0 ══ rank 1          rank 2 ══ rank 3         ══  shm/connection.h
//      └──────────┴──── tcp ─────┴─────────┘           ──  tcp/connection.h
//
// The two ends of a wire determine its transport; its user sees no difference. A rank waits for
// both kinds at once: it spins on memory and polls its sockets now and then. It sleeps in poll(2),
// and local ranks with news ring its event descriptor:
//
//   local rank stores a message ──▶ is the rank asleep? ──▶ rings        see Neighbours::sleep_elsewhere
//   socket has bytes            ──▶ poll(2) returns
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"

namespace weft::transport::mixed {

// Collective. `members`: the group's job ranks, ascending, including this one. Member::host tells
// which ranks share memory. `group` separates the exchanges of different groups.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group);

}  // namespace weft::transport::mixed
