// weft/communication/transport/tcp/opening.h -- opens the sockets of one open() call, on all ranks
// at once.
//
//   0 ──▶ 1 ┐  one TCP connection, opened by the lower rank: data in one direction carries the other's ACKs
//   1 ──▶ 0 ┘
//   0 ──▶ 2 ── one TCP connection, opened by the sender, if there is no opposite wire
//
//   1. every rank with incoming connections listens; all exchange their addresses (through the job) and
//      what they open
//   2. senders connect and authenticate, listeners accept them:          one event loop; no single
//      each sender identifies its wire                                   connection blocks it
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
  std::span<const std::int32_t> members;  // the group's job ranks
  std::int32_t rank = 0;                  // in the group
  std::uint64_t group = 0, number = 0;    // which open() of which group
  std::span<const Wire> wires;
  Capacity capacity;
};

// In wire order; empty for wires between other ranks. The two wires of a connection share it.
struct WireStreams {
  std::vector<OutStream> outgoing;
  std::vector<InStream> incoming;
};

// Collective. Fails within the job's timeout with the error of this or another rank, which it
// names.
Result<WireStreams> open_streams(Job& job, const Opening& opening);

}  // namespace weft::transport::tcp
