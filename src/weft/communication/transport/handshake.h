// weft/communication/transport/handshake.h -- how the two ends of a new socket prove to each other that they belong to the
// job.
//
//   caller                                            listener
//   "weft-2\n\n", 32 random bytes c          ──▶
//                                            ◀──      "weft-2\n\n", 32 random bytes l
//   HMAC(key, "caller"   c l)                ──▶                          wrong: told so, and closed
//                                            ◀──      HMAC(key, "listener" c l)
//
// The key itself never travels. Both sides' random bytes go into both proofs, so nothing can be replayed, and
// the roles do, so that a side's own proof sent back to it does not pass. A stranger at the listener gets to
// see random bytes and nothing made with the key. No byte is read past the last one that is shown here: what
// follows on the socket is the caller's.
//
// Where all traffic is to be sealed (WEFT_SECURE=1) the first line is "weft-2s\n", which is part of the proofs:
// both sides want it or neither. What follows is sealed with keys made from the key and both sides' random
// bytes. `key` is of one listener (bound_to), so that a call that was meant for one does not pass at another.
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

// The key for calls to one listener, of all that have `key`: "rank 2 at 10.0.0.3:4711".
std::string bound_to(std::string_view listener, std::string_view key);

// One side of it, as a state machine that never waits: an accept loop drives many at once.
//
//   Handshake hand(key, Role::listener);
//   while (poll({fd, hand.events()})) if (hand.step(fd) != Handshake::State::going) break;
class Handshake {
 public:
  Handshake(std::string_view key, Role role, Traffic traffic = Traffic::plain);

  enum class State : std::uint8_t {
    going,      // wait for events(), then step() again
    proven,     // the other side knows the key, and knows that we do
    stranger,   // it does not speak this protocol, or another version of it
    no_secret,  // it speaks it, but does not know the key (or thinks that we do not)
    unlike,     // it speaks it, but one of us seals and the other does not
    lost        // the socket failed or was closed
  };

  // Moves on as far as the socket (connected, non-blocking) allows. Never closes it.
  State step(int socket);
  State state() const { return state_; }
  short events() const;  // POLLIN or POLLOUT
  // Whether the other side has said its hello: a listener's caller has begun to prove itself.
  bool has_begun() const { return !theirs_.empty(); }
  // For what follows. REQUIRES: proven, with sealed traffic.
  SealKeys keys() const;

 private:
  static constexpr std::size_t kNonce = 32;
  static constexpr std::size_t kHello = 8 + kNonce;

  bool knows(std::string_view magic) const;
  void turn();  // what was to be sent is sent, or what was to come is there
  std::string proof(Role of) const;

  std::string key_;
  Role role_;
  Traffic traffic_;
  State state_ = State::going;
  int turns_ = 0;        // completed halves of the picture, 0 to 4
  std::string mine_;     // our hello
  std::string theirs_;   // theirs
  std::string sending_;  // bytes that are to be sent still
  std::string arrived_;  // bytes of the answer so far
  std::size_t awaited_ = 0;
  State farewell_ = State::going;  // what it ends with when that is sent
};

using Deadline = std::chrono::steady_clock::time_point;

// The same, waiting: for one socket whose other side is `peer` ("rank 2 at 10.0.0.3:4711"). A world_error
// says what was wrong: "... does not know the job's secret".
Status authenticate(int socket, std::string_view key, Role role, Deadline deadline, std::string_view peer);

// What to tell people of a handshake that ended without proof. `traffic` is this side's.
Error handshake_error(Handshake::State state, std::string_view peer, Traffic traffic = Traffic::plain);

}  // namespace weft::transport
