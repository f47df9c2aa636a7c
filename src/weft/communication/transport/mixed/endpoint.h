// weft/communication/transport/mixed/endpoint.h -- a group that spans machines: memory within each, sockets between them.
//
//   machine a                 machine b
//   rank 0 ══ rank 1          rank 2 ══ rank 3         ══  shm/connection.h
//      └──────────┴──── tcp ─────┴─────────┘           ──  tcp/connection.h
//
// A wire is what its two ends need; whoever uses it does not see the difference. A rank waits for both kinds
// at once: it spins on memory and looks at its sockets now and then, and sleeps in poll(2), where a neighbour
// that has news rings an event descriptor of its:
//
//   neighbour stores a message ──▶ is the rank asleep? ──▶ rings        see Neighbours::sleep_elsewhere
//   socket has bytes           ──▶ poll(2) returns
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"

namespace weft::transport::mixed {

// Collective. `members`: the group's ranks as the job numbers them, ascending, this one among them. Who
// shares memory is told by Member::host. `group` tells one group's exchanges from another's.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group);

}  // namespace weft::transport::mixed
