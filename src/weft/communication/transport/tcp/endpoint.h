// weft/communication/transport/tcp/endpoint.h -- ranks that reach each other by sockets, across machines or within one.
//
//   rank 0                               rank 1
//   Outgoing 0->1 channel 0  =========>  Incoming       one connection for the two wires of a channel:
//   Incoming                 <=========  Outgoing       what goes one way acknowledges what came the other
//   Outgoing 0->1 channel 1  =========>  Incoming       what is slow on one channel holds up no other
//
// open() listens on the host part of this rank's address in the job (loopback where it has none), at a port
// that the kernel chooses, only as long as it takes. Both ends of every socket prove that they belong to the
// job (handshake.h), with a key that is new for every open(); then the sender says which wire it is.
// Whoever else connects is dropped and disturbs nobody.
//
// Messages go from the sender's memory to the kernel and from there to the receiver's memory. What arrives
// before it is asked for stays in the kernel; while this rank waits for something else it is moved to buffers
// of the connection, at most capacity.slots messages, so that the sender has the room it was promised.
//
// Threads may drive different connections of one endpoint at the same time, and wait meanwhile.
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
  std::int32_t buffer_bytes = 0;          // of the kernel, each way; 0: as the kernel sees fit
  bool always_check = false;              // checksums on payloads also within a machine
  std::optional<Patience> patience = {};  // none: what suits the ranks of this machine; yields are not used
  int bell = -1;  // an event descriptor that others may ring to end wait(), which keeps a copy; -1: none
};

// `members`: the group's ranks as the job numbers them, ascending, this one among them. `group` tells one
// group's messages from another's, as in Topic. Not collective; open() is.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, const TcpOptions& options = {});

}  // namespace weft::transport::tcp
