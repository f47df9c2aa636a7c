// weft/communication/transport/tcp/opening.h -- brings about the sockets of one open(), on all ranks at once.
//
//   0 ──▶ 1 ┐  one connection, called by the lower rank: what goes one way acknowledges what came the other
//   1 ──▶ 0 ┘
//   0 ──▶ 2 ── one connection, called by the sender, where nothing goes back
//
//   1. every rank that is called listens; all exchange where (through the job), and what they are to open
//   2. senders connect and prove themselves, listeners let them in:      one loop, nothing in it waits for
//      each says which wire it is                                        one alone
//   3. all exchange that they are done, or what went wrong
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"
#include "weft/communication/transport/tcp/stream.h"

namespace weft::transport::tcp {

struct Opening {
  std::span<const std::int32_t> members;  // the group's ranks as the job numbers them
  std::int32_t rank = 0;                  // in the group
  std::uint64_t group = 0, number = 0;    // which open() of which group
  std::span<const Wire> wires;
  Capacity capacity;
};

// In the order of the wires; empty where this rank has no part. The two wires of a connection share it.
struct WireStreams {
  std::vector<OutStream> outgoing;
  std::vector<InStream> incoming;
};

// Collective. Fails with what went wrong here or at another rank, naming it, within the job's timeout.
Result<WireStreams> open_streams(Job& job, const Opening& opening);

}  // namespace weft::transport::tcp
