// weft/communication/transport/connection.h -- one way from one rank to another: messages in order, a few at a time.
//
//   rank 0                                         rank 1
//   Outgoing  --[ slot | slot | slot | slot ]-->   Incoming        slots: bounded, a free one is a credit
//
// Nothing here waits. A call that cannot go on returns false or nullptr and is made again, with the same
// arguments, after Endpoint::wait(). Both ends know how long the next message is: a message of another
// length is a fault, as is one that was damaged on its way (see wire.h); it is reported by
// Endpoint::fault() and the call never succeeds.
//
// Not thread-safe: one thread at a time drives a connection.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::transport {

struct Capacity {
  std::int32_t slots = 4;
  std::int64_t slot_bytes = 128 << 10;  // no message is longer
};

class Outgoing {
 public:
  virtual ~Outgoing() = default;

  // What the following messages belong to (a call's fingerprint): the receiver must expect the same label,
  // or the message is a fault. 0 at first.
  virtual void set_label(std::uint64_t label) = 0;

  // Where to write the next message, `bytes` long; nullptr while no slot is free.
  virtual std::byte* room(std::size_t bytes) = 0;
  // Sends what was written there. REQUIRES: room() gave a place.
  virtual void send() = 0;

  // The two in one, from the caller's memory, copied as seldom as the transport can. True when the memory
  // may be changed again; until then the call is repeated with the same bytes.
  virtual bool send_from(std::span<const std::byte> bytes) = 0;
};

class Incoming {
 public:
  virtual ~Incoming() = default;

  virtual void set_label(std::uint64_t label) = 0;

  // The next message, `bytes` long; nullptr while it is not all there. Stays until pop().
  virtual const std::byte* front(std::size_t bytes) = 0;
  virtual void pop() = 0;

  // The two in one, into the caller's memory. True when the message is there and its slot is free again;
  // until then the call is repeated with the same target.
  virtual bool receive_into(std::span<std::byte> target) = 0;
};

}  // namespace weft::transport
