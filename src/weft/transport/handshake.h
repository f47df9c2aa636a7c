// weft/transport/handshake.h -- how the two ends of a new socket prove to each other that they belong to the
// job.
//
//   caller                                            listener
//   "weft-1\n\n", 32 random bytes c          ──▶
//                                            ◀──      "weft-1\n\n", 32 random bytes l
//   HMAC(key, "caller"   c l)                ──▶                          wrong: closed, without a word
//                                            ◀──      HMAC(key, "listener" c l)
//
// The key itself never travels. Both sides' random bytes go into both proofs, so nothing can be replayed, and
// the roles do, so that a side's own proof sent back to it does not pass. A stranger at the listener gets to
// see random bytes and nothing made with the key. No byte is read past the last one that is shown here: what
// follows on the socket is the caller's.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/base/sha256.h"

namespace weft::transport {

enum class Role : std::uint8_t { caller, listener };

// One side of it, as a state machine that never waits: an accept loop drives many at once.
//
//   Handshake hand(key, Role::listener);
//   while (poll({fd, hand.events()})) if (hand.step(fd) != Handshake::State::going) break;
class Handshake {
 public:
  Handshake(std::string_view key, Role role);

  enum class State : std::uint8_t {
    going,      // wait for events(), then step() again
    proven,     // the other side knows the key, and knows that we do
    stranger,   // it does not speak this protocol, or another version of it
    no_secret,  // it speaks it, but does not know the key (or thinks that we do not)
    lost        // the socket failed or was closed
  };

  // Moves on as far as the socket (connected, non-blocking) allows. Never closes it.
  State step(int socket);
  State state() const { return state_; }
  short events() const;  // POLLIN or POLLOUT

 private:
  static constexpr std::size_t kNonce = 32;
  static constexpr std::size_t kHello = 8 + kNonce;

  void turn();  // what was to be sent is sent, or what was to come is there
  std::string proof(Role of) const;

  std::string key_;
  Role role_;
  State state_ = State::going;
  int turns_ = 0;        // completed halves of the picture, 0 to 4
  std::string mine_;     // our hello
  std::string theirs_;   // theirs
  std::string sending_;  // bytes that are to be sent still
  std::string arrived_;  // bytes of the answer so far
  std::size_t awaited_ = 0;
};

using Deadline = std::chrono::steady_clock::time_point;

// The same, waiting: for one socket whose other side is `peer` ("rank 2 at 10.0.0.3:4711"). A world_error
// says what was wrong: "... does not know the job's secret".
Status authenticate(int socket, std::string_view key, Role role, Deadline deadline, std::string_view peer);

// What to tell people of a handshake that ended without proof.
Error handshake_error(Handshake::State state, std::string_view peer);

}  // namespace weft::transport
