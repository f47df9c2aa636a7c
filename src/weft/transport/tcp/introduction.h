// weft/transport/tcp/introduction.h -- how the two sides of a new socket get to know each other.
//
//   Caller    connect ──▶ handshake ──▶ hello: "rank 0 to rank 1, channel 0"        calls again when cut off
//   Visitor   accepted ──▶ handshake ──▶ hello: read, not judged                    five seconds, then out
//
// Neither waits: step() goes on as far as the socket allows, polled() says what to wait for.
#pragma once
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/base/result.h"
#include "weft/transport/handshake.h"
#include "weft/transport/tcp/socket.h"
#include "weft/transport/wire.h"

namespace weft::transport::tcp {

// This rank on its way to the receiver of one wire. `key` outlives it.
class Caller {
 public:
  Caller(const Hello& hello, const Address& address, std::string_view key);

  // True when the other side knows which wire this is. Fails, naming the rank, when there is no way there.
  Result<bool> step();
  // Nothing is polled (descriptor -1) while it waits to call again.
  pollfd polled() const;
  Socket take_socket() { return std::move(socket_); }
  std::int32_t rank() const { return rank_; }
  const Address& address() const { return address_; }

 private:
  bool call_again();

  std::int32_t rank_;
  HelloBytes hello_;
  Address address_;
  std::string_view key_;
  Socket socket_;
  bool connected_ = false;
  std::optional<Handshake> hand_;
  std::size_t sent_ = 0;
  Deadline call_at_{};
};

// Somebody who has come to our listener: one of us, or a stranger.
class Visitor {
 public:
  Visitor(Socket socket, std::string_view key);

  enum class State : std::uint8_t {
    going,
    told,      // one of us, and its hello is there
    unwelcome  // a stranger, or gone, or too slow
  };
  State step();
  std::optional<Hello> hello() const { return decode(hello_); }
  pollfd polled() const;
  Socket take_socket() { return std::move(socket_); }

 private:
  State wait_on() const;

  Socket socket_;
  Handshake hand_;
  Deadline deadline_;
  HelloBytes hello_{};
  std::size_t got_ = 0;
};

}  // namespace weft::transport::tcp
