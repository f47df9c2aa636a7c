// weft/communication/transport/handshake.h -- mutual authentication of the two ends of a new
// socket.
//
//   caller                                            listener
//   "weft-2\n\n", 32 random bytes c          ──▶
//                                            ◀──      "weft-2\n\n", 32 random bytes l
//   HMAC(key, "caller"   c l)                ──▶                          wrong: refused and closed
//                                            ◀──      HMAC(key, "listener" c l)
//
// The key itself is never sent. Both proofs cover both sides' random bytes, which prevents replay.
// They also cover the roles, so that a proof reflected to its sender is not accepted. A stranger
// that connects to the listener sees random bytes and nothing derived from the key. No byte is read
// past the messages shown here: the rest of the stream belongs to the user of the socket.
//
// If all traffic is to be encrypted (WEFT_SECURE=1), the first line is "weft-2s\n". It is covered
// by the proofs: both sides encrypt or neither. The traffic is sealed with keys derived from the
// key and both sides' random bytes. `key` is specific to a listener (bound_to), so a proof for one
// listener is not accepted by another.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/base/sha256.h"
#include "weft/communication/transport/seal.h"

namespace weft::transport {

enum class Role : std::uint8_t { caller, listener };
enum class Traffic : std::uint8_t { plain, sealed };

// The key for connections to one listener, "rank 2 at 10.0.0.3:4711", derived from the common
// `key`.
std::string bound_to(std::string_view listener, std::string_view key);

// One side, as a state machine that never blocks: an accept loop drives many at once.
//
//   Handshake hand(key, Role::listener);
//   while (poll({fd, hand.events()})) if (hand.step(fd) != Handshake::State::going) break;
class Handshake {
 public:
  Handshake(std::string_view key, Role role, Traffic traffic = Traffic::plain);

  enum class State : std::uint8_t {
    going,      // wait for events(), then step() again
    proven,     // both sides have proven that they know the key
    stranger,   // the peer uses another protocol or version
    no_secret,  // the peer does not know the key (or says that we do not)
    unlike,     // only one of the two encrypts
    lost        // the socket failed or was closed
  };

  // Progresses as far as the socket (connected, non-blocking) allows. Never closes it.
  State step(int socket);
  State state() const { return state_; }
  short events() const;  // POLLIN or POLLOUT
  // Whether the peer's hello has arrived: a listener's client has started to authenticate.
  bool has_begun() const { return !theirs_.empty(); }
  // Keys of the following traffic. REQUIRES: proven, with sealed traffic.
  SealKeys keys() const;

 private:
  static constexpr std::size_t kNonce = 32;
  static constexpr std::size_t kHello = 8 + kNonce;

  bool knows(std::string_view magic) const;
  void turn();  // the pending send or receive is complete
  std::string proof(Role of) const;

  std::string key_;
  Role role_;
  Traffic traffic_;
  State state_ = State::going;
  int turns_ = 0;        // completed messages of the diagram, 0 to 4
  std::string mine_;     // our hello
  std::string theirs_;   // the peer's hello
  std::string sending_;  // bytes still to be sent
  std::string arrived_;  // bytes received of the awaited message
  std::size_t awaited_ = 0;
  State farewell_ = State::going;  // final state once everything is sent
};

using Deadline = std::chrono::steady_clock::time_point;

// The same, blocking, for one socket whose other end is `peer` ("rank 2 at 10.0.0.3:4711"). A
// environment_error says what was wrong: "... does not have the job's secret".
Status authenticate(int socket, std::string_view key, Role role, Deadline deadline, std::string_view peer);

// The error of a handshake that ended without proof. `traffic` is this side's.
Error handshake_error(Handshake::State state, std::string_view peer, Traffic traffic = Traffic::plain);

}  // namespace weft::transport
