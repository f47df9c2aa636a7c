#include "weft/transport/tcp/introduction.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

namespace weft::transport::tcp {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kVisitorPatience{5};
constexpr std::chrono::milliseconds kCallAgain{20};

Error unreachable(std::int32_t rank, const Error& error) {
  return world_error(fmt::format("cannot reach rank {}: {}", rank, error.message), error.hint);
}

}  // namespace

Caller::Caller(const Hello& hello, const Address& address, std::string_view key)
    : rank_(hello.wire.to), hello_(encode(hello)), address_(address), key_(key) {}

Result<bool> Caller::step() {
  if (!socket_) {
    if (Clock::now() < call_at_) return false;
    auto socket = start_connect(address_);
    if (!socket.ok()) return unreachable(rank_, socket.error());
    socket_ = std::move(*socket);
    connected_ = false;
    hand_.emplace(key_, Role::caller);
    sent_ = 0;
  }
  if (!connected_) {
    // Until it is decided the socket has no error either: only what can be written to is connected.
    pollfd polled{socket_.descriptor(), POLLOUT, 0};
    if (::poll(&polled, 1, 0) <= 0) return false;
    if (const Status status = finish_connect(socket_, address_); !status.ok())
      return unreachable(rank_, status.error());
    connected_ = true;
  }
  if (hand_->state() != Handshake::State::proven) {
    switch (const auto state = hand_->step(socket_.descriptor())) {
      case Handshake::State::going: return false;
      case Handshake::State::proven: break;
      case Handshake::State::lost: return call_again();  // the listener lost patience with us
      default: return handshake_error(state, fmt::format("rank {} at {}", rank_, address_.text()));
    }
  }
  while (sent_ < hello_.size()) {
    const ssize_t taken =
        ::send(socket_.descriptor(), hello_.data() + sent_, hello_.size() - sent_, MSG_NOSIGNAL);
    if (taken < 0 && errno == EAGAIN) return false;
    if (taken < 0 && errno != EINTR) return call_again();
    if (taken > 0) sent_ += static_cast<std::size_t>(taken);
  }
  return true;
}

pollfd Caller::polled() const {
  const bool writes = !connected_ || hand_->state() == Handshake::State::proven;
  return {socket_.descriptor(), writes ? static_cast<short>(POLLOUT) : hand_->events(), 0};
}

bool Caller::call_again() {
  socket_.close();
  connected_ = false;
  call_at_ = Clock::now() + kCallAgain;
  return false;
}

Visitor::Visitor(Socket socket, std::string_view key)
    : socket_(std::move(socket)), hand_(key, Role::listener), deadline_(Clock::now() + kVisitorPatience) {}

Visitor::State Visitor::step() {
  if (hand_.state() != Handshake::State::proven) {
    const auto state = hand_.step(socket_.descriptor());
    if (state == Handshake::State::going) return wait_on();
    if (state != Handshake::State::proven) return State::unwelcome;
  }
  while (got_ < hello_.size()) {
    const ssize_t received = ::recv(socket_.descriptor(), hello_.data() + got_, hello_.size() - got_, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && errno == EAGAIN) return wait_on();
    if (received <= 0) return State::unwelcome;
    got_ += static_cast<std::size_t>(received);
  }
  return State::told;
}

Visitor::State Visitor::wait_on() const { return Clock::now() < deadline_ ? State::going : State::unwelcome; }

pollfd Visitor::polled() const {
  const bool reads = hand_.state() == Handshake::State::proven;
  return {socket_.descriptor(), reads ? static_cast<short>(POLLIN) : hand_.events(), 0};
}

}  // namespace weft::transport::tcp
