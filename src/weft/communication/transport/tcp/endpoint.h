// weft/communication/transport/tcp/endpoint.h -- the transport over TCP sockets, between machines
// or within one.
//
//   rank 0                               rank 1
//   Outgoing 0->1 channel 0  =========>  Incoming       one TCP connection for the two wires of a channel:
//   Incoming                 <=========  Outgoing       data in one direction carries the other's ACKs
//   Outgoing 0->1 channel 1  =========>  Incoming       a slow channel delays no other
//
// open() listens on the host part of this rank's address in the job (loopback if it has none), at
// an ephemeral port, only until all connections are open. Both ends of every socket prove that they
// belong to the job (handshake.h), with a new key per open(); then the sender identifies the wire.
// Other connections are dropped and delay nothing.
//
// Messages go from the sender's memory to the kernel and from there to the receiver's memory. Data
// that arrives before it is asked for stays in the kernel. While this rank waits for something
// else, it is moved to buffers of the connection, at most capacity.slots messages, so that the
// sender has the capacity it was promised.
//
// Threads may drive different connections of one endpoint, and wait, concurrently.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/doorbell.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"

namespace weft::transport::tcp {

struct TcpOptions {
  std::int32_t buffer_bytes = 0;          // of the kernel, per direction; 0: the kernel's default
  bool always_check = false;              // checksums on payloads even within a machine
  std::optional<Patience> patience = {};  // empty: chosen by this machine's ranks and cores
  int bell = -1;                          // event descriptor that ends wait() when rung; duplicated; -1: none
};

// `members`: the group's job ranks, ascending, including this one. `group` separates the messages
// of different groups, as in Topic. Not collective; open() is.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, const TcpOptions& options = {});

}  // namespace weft::transport::tcp
