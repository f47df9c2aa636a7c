// weft/communication/transport/connection.h -- unidirectional FIFO connection between two ranks
// with a bounded number of slots.
//
//   rank 0                                         rank 1
//   Outgoing  --[ slot | slot | slot | slot ]-->   Incoming        slots: bounded, a free one is a credit
//
// Nothing here blocks. A call that cannot progress returns false or nullptr and is repeated with
// the same arguments after Endpoint::wait(). Both ends know the length of the next message. A
// message of another length is a fault, as is one that was corrupted in transit (see wire.h).
// Endpoint::fault() reports it, and the call never succeeds.
//
// Not thread-safe: one thread at a time drives a connection.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::transport {

struct Capacity {
  std::int32_t slots = 4;
  std::int64_t slot_bytes = 128 << 10;  // maximum message length
};

class Outgoing {
 public:
  virtual ~Outgoing() = default;

  // Labels the following messages (with a call's fingerprint): the receiver must expect the same
  // label, otherwise the message is a fault. Initially 0.
  virtual void set_label(std::uint64_t label) = 0;

  // The buffer for the next message of `bytes` bytes; nullptr while no slot is free.
  virtual std::byte* room(std::size_t bytes) = 0;
  // Sends the message written there. REQUIRES: room() returned a buffer.
  virtual void send() = 0;

  // room() and send() combined, from the caller's memory, with as few copies as the transport can.
  // True when the memory may be reused; until then the call is repeated with the same bytes.
  virtual bool send_from(std::span<const std::byte> bytes) = 0;
};

class Incoming {
 public:
  virtual ~Incoming() = default;

  virtual void set_label(std::uint64_t label) = 0;

  // The next message, of `bytes` bytes; nullptr until all of it has arrived. Valid until pop().
  virtual const std::byte* front(std::size_t bytes) = 0;
  virtual void pop() = 0;

  // front() and pop() combined, into the caller's memory. True when the message is there and its
  // slot is free; until then the call is repeated with the same target.
  virtual bool receive_into(std::span<std::byte> target) = 0;
};

}  // namespace weft::transport
