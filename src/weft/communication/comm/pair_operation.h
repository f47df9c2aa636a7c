// weft/communication/comm/pair_operation.h -- a send and its receive: one connection, fragments of
// one slot, no other ranks.
//
//   rank 0  high    [send 2] ─────▶  rank 1      one connection per priority and direction: both ranks
//           normal  [send 1] ─────▶              start the sends of a connection in the same order,
//           low     [send 3] ─────▶              those of different connections in any order
//
// The sender is done when its buffer may be reused, possibly before the receiver has started.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "weft/communication/comm/call.h"
#include "weft/communication/comm/operation.h"
#include "weft/communication/comm/source.h"
#include "weft/communication/transport/endpoint.h"

namespace weft::comm {

// This rank's ends of the connections of one priority to and from a peer.
struct PairWires {
  std::unique_ptr<transport::Outgoing> out;
  std::unique_ptr<transport::Incoming> in;
  std::uint64_t sent = 0, received = 0;           // calls so far: part of the labels
  std::unique_ptr<Operation> sending, receiving;  // in flight
};

// A pair is opened once, by any thread. Until `is_open`, only `other` may be read.
struct Pair {
  Status open(Result<std::unique_ptr<transport::Endpoint>> made, bool is_lower);

  std::int32_t other = 0;  // rank of the group
  std::atomic<bool> is_open{false};
  Status opened;  // why opening failed
  std::unique_ptr<transport::Endpoint> endpoint;
  std::unique_ptr<Source> source;
  std::array<PairWires, kPriorities> wires;  // by priority
  std::size_t slot_bytes = 0;
};

// Starts a send from this rank (`sends`) or to it; returns a failed operation if the pair could not
// be opened. REQUIRES: is_open, and no operation of this priority and direction is in flight.
Operation* start_pair(Pair& pair, const Call& call, bool sends);

}  // namespace weft::comm
