// weft/communication/transport/client.h -- connects to a listening rank, with retries until it
// answers.
//
//   dial ──▶ connect ──▶ handshake ──▶ link
//     ▲         │            │
//     └─ later ─┴─ refused, ─┘ lost          wrong secret, another protocol, only one side
//                                            encrypts: not retried
//
// Nothing here blocks, except `dial` while it resolves a name.
#pragma once
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/control_link.h"
#include "weft/communication/transport/handshake.h"

namespace weft::transport {

// The result of starting connection attempt number `attempt`, from 0.
struct DialResult {
  tcp::Socket socket;
  std::optional<tcp::Address> address;  // of a TCP connection in progress
};
using Dial = std::function<Result<DialResult>(std::int32_t attempt)>;

class Client {
 public:
  enum class State : std::uint8_t { trying, through, refused };

  // `peer` is for messages: "rank 0 at 10.0.0.1:29500".
  Client(Dial dial, std::string_view key, Traffic traffic, std::string peer)
      : dial_(std::move(dial)), key_(key), traffic_(traffic), peer_(std::move(peer)) {}

  State step();
  void add_to(std::vector<pollfd>& wanted) const;
  // When to call step() even if poll reports no event.
  Deadline next_try() const;

  ControlLink take_line();  // REQUIRES: through
  // Why it was refused, or why the last attempt failed.
  const Error& error() const { return error_; }
  const std::string& peer() const { return peer_; }

 private:
  static constexpr std::chrono::milliseconds kPatience{5'000};  // per connection attempt

  void try_later(Error error);
  bool connect();

  Dial dial_;
  std::string key_;
  Traffic traffic_;
  std::string peer_;
  State state_ = State::trying;
  tcp::Socket socket_;
  std::optional<tcp::Address> address_;
  bool connected_ = false;
  std::optional<Handshake> hand_;
  std::int32_t attempts_ = 0;
  Deadline next_try_ = {}, give_up_ = {};
  Error error_ = environment_error("no connection yet");
};

}  // namespace weft::transport
