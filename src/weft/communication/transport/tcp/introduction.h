// weft/communication/transport/tcp/introduction.h -- how the two sides of a new socket get to know each other.
//
//   Caller    connect ──▶ handshake ──▶ hello: "rank 0 to rank 1, channel 0"        calls again when cut off
//   Visitor   proven (porch.h)      ──▶ hello: read, not judged
//
// Neither waits: step() goes on as far as the socket allows, polled() says what to wait for.
#pragma once
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/communication/transport/porch.h"
#include "weft/communication/transport/tcp/stream.h"
#include "weft/communication/transport/wire.h"

namespace weft::transport::tcp {

// This rank on its way to the receiver of one wire.
class Caller {
 public:
  Caller(const Hello& hello, const Address& address, std::string key, Traffic traffic);

  // True when the other side knows which wire this is. Fails, naming the rank, when there is no way there.
  Result<bool> step();
  // Nothing is polled (descriptor -1) while it waits to call again.
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
  Streams streams_;  // when it is proven
  std::size_t sent_ = 0;
  Deadline call_at_{}, give_up_{};
};

// One of us who has come to our listener.
class Visitor {
 public:
  explicit Visitor(Porch::Proven proven) : streams_(std::move(proven.socket), proven.keys) {}

  enum class State : std::uint8_t {
    going,
    told,      // one of us, and its hello is there
    unwelcome  // gone
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
