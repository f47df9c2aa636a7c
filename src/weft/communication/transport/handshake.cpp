#include "weft/communication/transport/handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "weft/communication/transport/secret.h"

namespace weft::transport {
namespace {

// 8 bytes; the number is the protocol's version.
constexpr std::string_view kPlainMagic = "weft-2\n\n", kSealedMagic = "weft-2s\n";
constexpr std::size_t kMagicBytes = kPlainMagic.size();
// Sent instead of a proof, with the same length.
constexpr std::string_view kRefusal = "weft: you do not know the secret";
static_assert(kRefusal.size() == std::tuple_size_v<Sha256>);

std::string_view magic_of(Traffic traffic) { return traffic == Traffic::sealed ? kSealedMagic : kPlainMagic; }

}  // namespace

std::string bound_to(std::string_view listener, std::string_view key) {
  return hex(bytes_of(hmac_sha256(key, fmt::format("call to {}", listener))));
}

Handshake::Handshake(std::string_view key, Role role, Traffic traffic)
    : key_(key),
      role_(role),
      traffic_(traffic),
      mine_(std::string(magic_of(traffic)) + random_bytes(kNonce)) {
  if (role == Role::caller) {
    sending_ = mine_;
  } else {
    awaited_ = kHello;
  }
}

short Handshake::events() const { return sending_.empty() ? POLLIN : POLLOUT; }

Handshake::State Handshake::step(int socket) {
  while (state_ == State::going) {
    if (!sending_.empty()) {
      const ssize_t sent = ::send(socket, sending_.data(), sending_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return state_;
      if (sent < 0) return state_ = State::lost;
      sending_.erase(0, static_cast<std::size_t>(sent));
      if (sending_.empty()) turn();
      continue;
    }
    char buffer[kHello];
    const std::size_t missing = std::min(sizeof buffer, awaited_ - arrived_.size());
    const ssize_t came = ::recv(socket, buffer, missing, MSG_DONTWAIT);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return state_;
    if (came <= 0) return state_ = State::lost;
    arrived_.append(buffer, static_cast<std::size_t>(came));
    // Another protocol is detected by its first bytes, before a whole hello has arrived.
    if (awaited_ == kHello && !knows(std::string_view(arrived_).substr(0, kMagicBytes)))
      return state_ = State::stranger;
    if (arrived_.size() == awaited_) turn();
  }
  return state_;
}

bool Handshake::knows(std::string_view magic) const {
  return kPlainMagic.starts_with(magic) || kSealedMagic.starts_with(magic);
}

void Handshake::turn() {
  if (farewell_ != State::going) {
    state_ = farewell_;
    return;
  }
  ++turns_;
  const std::string arrived = std::exchange(arrived_, {});
  const Role other = role_ == Role::caller ? Role::listener : Role::caller;
  const int heard = role_ == Role::caller ? 2 : 1;  // the turn at which the peer's hello is complete
  if (turns_ == heard) {
    theirs_ = arrived;
    const bool alike = theirs_.starts_with(magic_of(traffic_));
    if (!alike && role_ == Role::caller) {
      state_ = State::unlike;
      return;
    }
    // A client with the other kind of traffic learns this from our hello.
    if (!alike) farewell_ = State::unlike;
    sending_ = role_ == Role::caller ? proof(role_) : mine_;
  } else if (turns_ == heard + 2) {
    if (!same_secret_bytes(arrived, proof(other))) {
      if (role_ == Role::caller) {
        state_ = State::no_secret;
      } else {
        farewell_ = State::no_secret;
        sending_ = kRefusal;
      }
    } else if (role_ == Role::caller) {
      state_ = State::proven;
    } else {
      sending_ = proof(role_);
    }
  } else if (turns_ == 4) {
    state_ = State::proven;
  } else {
    awaited_ = turns_ == 1 ? kHello : std::tuple_size_v<Sha256>;
  }
}

std::string Handshake::proof(Role of) const {
  const std::string& caller = role_ == Role::caller ? mine_ : theirs_;
  const std::string& listener = role_ == Role::caller ? theirs_ : mine_;
  const std::string_view word = of == Role::caller ? "caller" : "listener";
  return std::string(bytes_of(hmac_sha256(key_, fmt::format("{}{}{}", word, caller, listener))));
}

SealKeys Handshake::keys() const {
  WEFT_CHECK(state_ == State::proven && traffic_ == Traffic::sealed);
  const bool calls = role_ == Role::caller;
  const std::string salt = calls ? mine_ + theirs_ : theirs_ + mine_;
  const SealKey to_listener = SealKey::derive(key_, salt, "weft caller to listener");
  const SealKey to_caller = SealKey::derive(key_, salt, "weft listener to caller");
  return {.send = calls ? to_listener : to_caller, .receive = calls ? to_caller : to_listener};
}

Error handshake_error(Handshake::State state, std::string_view peer, Traffic traffic) {
  switch (state) {
    case Handshake::State::unlike:
      return environment_error(traffic == Traffic::sealed
                                   ? fmt::format("{} does not encrypt its messages, this rank does", peer)
                                   : fmt::format("{} encrypts its messages, this rank does not", peer),
                               "set WEFT_SECURE=1 for every rank or for none");
    case Handshake::State::stranger:
      return environment_error(fmt::format("{} does not use Weft's protocol, or uses another version", peer),
                               "does another program use this port?");
    case Handshake::State::no_secret:
      return environment_error(fmt::format("{} does not have the job's secret", peer),
                               "give every rank the same WEFT_JOB_SECRET (16 characters or more)");
    case Handshake::State::lost:
      return environment_error(fmt::format("{} closed the connection before it authenticated", peer));
    case Handshake::State::going:
    case Handshake::State::proven: break;
  }
  return environment_error(fmt::format("{} did not authenticate in time", peer));
}

Status authenticate(int socket, std::string_view key, Role role, Deadline deadline, std::string_view peer) {
  Handshake hand(key, role);
  while (hand.step(socket) == Handshake::State::going) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd wanted = {socket, hand.events(), 0};
    ::poll(&wanted, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
  }
  if (hand.state() == Handshake::State::proven) return {};
  return handshake_error(hand.state(), peer);
}

}  // namespace weft::transport
