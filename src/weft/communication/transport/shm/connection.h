// weft/communication/transport/shm/connection.h -- a connection through a ring of slots in shared
// memory.
//
//   two copies   sender's memory ──▶ slot ──▶ receiver's memory         always possible
//   one copy     sender's memory ───────────▶ receiver's memory         long messages, if permitted
//
// With one copy, the sender posts the address of the message, the receiver fetches it, and
// send_from() succeeds once that is done. A receiver that uses front() fetches into the slot. If
// the receiver does not fetch within the sender's timeout, or cannot, the sender copies into the
// slot instead: while slots are free, a message never waits for its receiver.
#pragma once
#include <memory>

#include "weft/communication/transport/connection.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/segment.h"
#include "weft/communication/transport/shm/neighbours.h"

namespace weft::transport::shm {

// `memory` is the ring within `segment`; a connection keeps both alive.
struct RingPlace {
  std::shared_ptr<Neighbours> neighbours;
  std::shared_ptr<const Segment> segment;
  std::byte* memory = nullptr;
};

std::unique_ptr<Outgoing> make_outgoing(RingPlace place, const Wire& wire, const Capacity& capacity);
std::unique_ptr<Incoming> make_incoming(RingPlace place, const Wire& wire, const Capacity& capacity);

}  // namespace weft::transport::shm
