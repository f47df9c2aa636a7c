#include "weft/communication/transport/tcp/wire_handshake.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

namespace weft::transport::tcp {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::milliseconds kCallAgain{20};

Error unreachable(std::int32_t rank, const Error& error) {
  return environment_error(fmt::format("cannot reach rank {}: {}", rank, error.message), error.hint);
}

}  // namespace

Client::Client(const Hello& hello, const Address& address, std::string key, Traffic traffic)
    : rank_(hello.wire.to),
      hello_(encode(hello)),
      address_(address),
      key_(std::move(key)),
      traffic_(traffic) {}

Result<bool> Client::step() {
  if (!streams_.out) {
    WEFT_TRY(is_proven, shake_hands());
    if (!is_proven) return false;
  }
  while (sent_ < hello_.size() || (streams_.out.seal && streams_.out.seal->has_kept())) {
    const int socket = streams_.out.descriptor();
    const iovec rest{hello_.data() + sent_, hello_.size() - sent_};
    ssize_t taken = 0;
    if (!streams_.out.seal) {
      taken = ::send(socket, rest.iov_base, rest.iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (rest.iov_len > 0) {
      taken = streams_.out.seal->send(socket, {&rest, 1});
    } else if (!streams_.out.seal->flush(socket)) {
      taken = -1;
    }
    if (taken < 0 && errno == EAGAIN) return false;
    if (taken < 0 && errno != EINTR) return call_again();
    if (taken > 0) sent_ += static_cast<std::size_t>(taken);
  }
  return true;
}

// The listener exists: a connection that is cut off may have been dropped in a flood, and is
// retried. Only permanent problems are errors.
Result<bool> Client::shake_hands() {
  if (!socket_) {
    if (Clock::now() < call_at_) return false;
    auto socket = start_connect(address_);
    if (!socket.ok()) return unreachable(rank_, socket.error());
    socket_ = std::move(*socket);
    connected_ = false;
    hand_.emplace(key_, Role::caller, traffic_);
    sent_ = 0;
    give_up_ = Clock::now() + kPatience;
  }
  if (Clock::now() >= give_up_) return call_again();
  if (!connected_) {
    // While the connection is pending the socket has no error either: only a writable one is
    // connected.
    pollfd polled{socket_.descriptor(), POLLOUT, 0};
    if (::poll(&polled, 1, 0) <= 0) return false;
    if (const Status status = finish_connect(socket_, address_); !status.ok())
      return unreachable(rank_, status.error());
    connected_ = true;
  }
  switch (const auto state = hand_->step(socket_.descriptor())) {
    case Handshake::State::going: return false;
    case Handshake::State::proven: break;
    case Handshake::State::lost: return call_again();
    default: return handshake_error(state, fmt::format("rank {} at {}", rank_, address_.text()), traffic_);
  }
  std::optional<SealKeys> keys;
  if (traffic_ == Traffic::sealed) keys = hand_->keys();
  streams_ = Streams(std::move(socket_), keys);
  return true;
}

pollfd Client::polled() const {
  if (streams_.out) return {streams_.out.descriptor(), POLLOUT, 0};
  return {socket_.descriptor(), connected_ ? hand_->events() : static_cast<short>(POLLOUT), 0};
}

bool Client::call_again() {
  socket_.close();
  streams_ = {};
  connected_ = false;
  call_at_ = Clock::now() + kCallAgain;
  return false;
}

Visitor::State Visitor::step() {
  while (got_ < hello_.size()) {
    const iovec rest{hello_.data() + got_, hello_.size() - got_};
    const int socket = streams_.in.descriptor();
    const ssize_t received = streams_.in.seal ? streams_.in.seal->receive(socket, {&rest, 1})
                                              : ::recv(socket, rest.iov_base, rest.iov_len, MSG_DONTWAIT);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && errno == EAGAIN) return State::going;
    if (received <= 0) return State::unwelcome;
    got_ += static_cast<std::size_t>(received);
  }
  return State::told;
}

}  // namespace weft::transport::tcp
