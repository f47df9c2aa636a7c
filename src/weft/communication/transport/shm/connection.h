// weft/communication/transport/shm/connection.h -- a connection through a ring of slots in shared memory.
//
//   two copies   sender's memory ──▶ slot ──▶ receiver's memory         always possible
//   one copy     sender's memory ───────────▶ receiver's memory         long messages, where allowed
//
// With one copy the sender posts where the message is, the receiver fetches it, and send_from() succeeds once
// that is done. A receiver that uses front() fetches into the slot. When the receiver does not come while the
// sender's patience lasts, or cannot fetch, the sender copies into the slot instead: a message never waits
// for its receiver to be ready, as long as slots are free.
#pragma once
#include <memory>

#include "weft/communication/transport/connection.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/segment.h"
#include "weft/communication/transport/shm/neighbours.h"

namespace weft::transport::shm {

// `memory` is the ring's part of `segment`; both ends are kept as long as a connection needs them.
struct RingPlace {
  std::shared_ptr<Neighbours> neighbours;
  std::shared_ptr<const Segment> segment;
  std::byte* memory = nullptr;
};

std::unique_ptr<Outgoing> make_outgoing(RingPlace place, const Wire& wire, const Capacity& capacity);
std::unique_ptr<Incoming> make_incoming(RingPlace place, const Wire& wire, const Capacity& capacity);

}  // namespace weft::transport::shm
