// weft/communication/transport/tcp/stream.h -- the two directions of a TCP connection, with
// separate owners.
//
//   connection ──▶ OutStream (a Sender's)      one descriptor, closed when both are destroyed
//              ──▶ InStream (a Receiver's)
//
// If traffic is sealed, each direction has its own cipher state (seal.h).
#pragma once
#include <memory>
#include <optional>
#include <utility>

#include "weft/communication/transport/seal.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport::tcp {

template <class Seal>
struct Stream {
  std::shared_ptr<const Socket> socket;
  std::unique_ptr<Seal> seal;  // null: unencrypted

  Stream() = default;
  Stream(Socket alone)
      : socket(std::make_shared<const Socket>(std::move(alone))) {}  // NOLINT: implicit on purpose
  Stream(std::shared_ptr<const Socket> shared, std::unique_ptr<Seal> state)
      : socket(std::move(shared)), seal(std::move(state)) {}

  explicit operator bool() const { return socket && *socket; }
  int descriptor() const { return socket ? socket->descriptor() : -1; }
};
using OutStream = Stream<SealedOut>;
using InStream = Stream<SealedIn>;

struct Streams {
  OutStream out;
  InStream in;

  Streams() = default;
  Streams(Socket connected, const std::optional<SealKeys>& keys) {
    const auto socket = std::make_shared<const Socket>(std::move(connected));
    out = {socket, keys ? std::make_unique<SealedOut>(keys->send) : nullptr};
    in = {socket, keys ? std::make_unique<SealedIn>(keys->receive) : nullptr};
  }
};

}  // namespace weft::transport::tcp
