// weft/communication/transport/caller.h -- gets through to a rank that listens, trying again until it answers.
//
//   dial ──▶ connect ──▶ handshake ──▶ line
//     ▲         │            │
//     └─ later ─┴─ refused, ─┘ lost          no secret, another protocol, one of the two
//                                            encrypts: no use trying again
//
// Nothing here waits, but for `dial` where it looks up a name.
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

// Starts a connection: the `attempt`th, from 0.
struct Dialled {
  tcp::Socket socket;
  std::optional<tcp::Address> address;  // of TCP: not connected yet
};
using Dial = std::function<Result<Dialled>(std::int32_t attempt)>;

class Caller {
 public:
  enum class State : std::uint8_t { trying, through, refused };

  // `peer` is for people: "rank 0 at 10.0.0.1:29500".
  Caller(Dial dial, std::string_view key, Traffic traffic, std::string peer)
      : dial_(std::move(dial)), key_(key), traffic_(traffic), peer_(std::move(peer)) {}

  State step();
  void add_to(std::vector<pollfd>& wanted) const;
  // When step() has something to do even if poll finds nothing.
  Deadline next_try() const;

  ControlLink take_line();  // REQUIRES: through
  // Why it is refused, or what the last try failed with.
  const Error& error() const { return error_; }
  const std::string& peer() const { return peer_; }

 private:
  static constexpr std::chrono::milliseconds kPatience{5'000};  // with one address that does not answer

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
  Error error_ = world_error("no connection yet");
};

}  // namespace weft::transport
