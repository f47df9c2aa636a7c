// weft/communication/comm/pair_operation.h -- a send and its receive: one wire, pieces as long as a slot, nobody else.
//
//   rank 0  high    [send 2] ─────▶  rank 1      a wire per priority and direction: the two ranks start the sends of
//           normal  [send 1] ─────▶              one wire in the same order, those of different wires in any
//           low     [send 3] ─────▶
//
// The sender is done when its memory is its own again, which may be before the receiver has come.
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

// What this rank has of the wires of one priority between it and another.
struct PairWires {
  std::unique_ptr<transport::Outgoing> out;
  std::unique_ptr<transport::Incoming> in;
  std::uint64_t sent = 0, received = 0;           // calls so far: part of the labels
  std::unique_ptr<Operation> sending, receiving;  // under way
};

// A pair is opened once, by any thread. Until `is_open` nothing but `other` is to be read.
struct Pair {
  Status open(Result<std::unique_ptr<transport::Endpoint>> made, bool is_lower);

  std::int32_t other = 0;  // rank of the group
  std::atomic<bool> is_open{false};
  Status opened;  // why there are no wires
  std::unique_ptr<transport::Endpoint> endpoint;
  std::unique_ptr<Source> source;
  std::array<PairWires, kPriorities> wires;  // by priority
  std::size_t slot_bytes = 0;
};

// Begins a send from (`sends`) or to this rank; one that has failed where the pair could not be opened.
// REQUIRES: is_open, and nothing of this priority and direction is under way.
Operation* start_pair(Pair& pair, const Call& call, bool sends);

}  // namespace weft::comm
