// weft/communication/transport/tcp/wire_handshake.h -- how the two ends of a new socket identify
// their wire.
//
//   Caller    connect ──▶ handshake ──▶ hello: "rank 0 to rank 1, channel 0"        reconnects when cut off
//   Visitor   proven (accept_queue.h)      ──▶ hello: parsed, not checked
//
// Neither blocks: step() progresses as far as the socket allows, polled() returns what to wait for.
#pragma once
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/communication/transport/accept_queue.h"
#include "weft/communication/transport/tcp/stream.h"
#include "weft/communication/transport/wire.h"

namespace weft::transport::tcp {

// The connecting side: for the receiver of one wire.
class Client {
 public:
  Client(const Hello& hello, const Address& address, std::string key, Traffic traffic);

  // True once the hello is sent. Fails with the name of the rank if it cannot be reached.
  Result<bool> step();
  // Polls nothing (descriptor -1) until the next attempt.
  pollfd polled() const;
  Streams take_streams() { return std::move(streams_); }
  std::int32_t rank() const { return rank_; }
  const Address& address() const { return address_; }

 private:
  bool call_again();
  Result<bool> shake_hands();

  std::int32_t rank_;
  HelloBytes hello_;
  Address address_;
  std::string key_;
  Traffic traffic_;
  Socket socket_;
  bool connected_ = false;
  std::optional<Handshake> hand_;
  Streams streams_;  // once authenticated
  std::size_t sent_ = 0;
  Deadline call_at_{}, give_up_{};
};

// Listener side: an authenticated connection.
class Visitor {
 public:
  explicit Visitor(AcceptQueue::Proven proven) : streams_(std::move(proven.socket), proven.keys) {}

  enum class State : std::uint8_t {
    going,
    told,      // its hello has arrived
    unwelcome  // closed
  };
  State step();
  std::optional<Hello> hello() const { return decode(hello_); }
  pollfd polled() const { return {streams_.in.descriptor(), POLLIN, 0}; }
  Streams take_streams() { return std::move(streams_); }

 private:
  Streams streams_;
  HelloBytes hello_{};
  std::size_t got_ = 0;
};

}  // namespace weft::transport::tcp
