// weft/comm/pair_operation.h -- a send and its receive: one wire, pieces as long as a slot, nobody else.
//
// The sender is done when its memory is its own again, which may be before the receiver has come.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weft/comm/call.h"
#include "weft/comm/operation.h"
#include "weft/transport/endpoint.h"

namespace weft::comm {

// Both ends of the two wires between this rank and another.
struct Pair {
  std::unique_ptr<transport::Endpoint> endpoint;
  std::unique_ptr<transport::Outgoing> out;
  std::unique_ptr<transport::Incoming> in;
  std::int32_t other = 0;  // rank of the group
  std::size_t slot_bytes = 0;
  std::uint64_t sent = 0, received = 0;  // calls so far: part of the labels
  bool sending = false, receiving = false;
};

// REQUIRES: `call` is a send from or to this rank, and no other one in its direction is under way. `pair`
// outlives the operation.
std::unique_ptr<Operation> start_pair(Pair& pair, const Call& call, bool sends);

}  // namespace weft::comm
