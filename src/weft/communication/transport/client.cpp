#include "weft/communication/transport/client.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "weft/communication/transport/unix_socket.h"

namespace weft::transport {

void Client::try_later(Error error) {
  const int doublings = std::min(attempts_, 6);
  next_try_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(3 << doublings);
  error_ = std::move(error);
  socket_.close();
  hand_.reset();
}

// True once connected; otherwise the connection is pending or will be retried.
bool Client::connect() {
  const auto now = std::chrono::steady_clock::now();
  if (!tcp::wait_for(socket_, POLLOUT, now)) {
    if (now >= give_up_) try_later(tcp::socket_error(fmt::format("cannot connect to {}", peer_), ETIMEDOUT));
    return false;
  }
  if (Status status = tcp::finish_connect(socket_, *address_); !status.ok()) {
    try_later(status.error());
    return false;
  }
  // Without a listener on an ephemeral port, the kernel may assign that port to this socket, which
  // then connects to itself.
  const Result<tcp::Address> here = tcp::local_address(socket_);
  if (here.ok() && here->text() == address_->text()) {
    try_later(tcp::socket_error(fmt::format("cannot connect to {}", peer_), ECONNREFUSED));
    return false;
  }
  return connected_ = true;
}

Client::State Client::step() {
  if (state_ != State::trying) return state_;
  if (!socket_) {
    if (std::chrono::steady_clock::now() < next_try_) return state_;
    Result<DialResult> dialled = dial_(attempts_++);
    if (!dialled.ok()) {
      try_later(dialled.error());
      return state_;
    }
    socket_ = std::move(dialled->socket);
    address_ = dialled->address;
    connected_ = !address_;
    hand_.emplace(key_, Role::caller, traffic_);
    give_up_ = std::chrono::steady_clock::now() + kPatience;
  }
  if (!connected_ && !connect()) return state_;
  switch (hand_->step(socket_.descriptor())) {
    case Handshake::State::going:
      // A listener under flood may have dropped the connection before the handshake.
      if (std::chrono::steady_clock::now() >= give_up_)
        try_later(handshake_error(hand_->state(), peer_, traffic_));
      break;
    case Handshake::State::lost: try_later(handshake_error(hand_->state(), peer_, traffic_)); break;
    case Handshake::State::stranger:
    case Handshake::State::no_secret:
    case Handshake::State::unlike:
      error_ = handshake_error(hand_->state(), peer_, traffic_);
      state_ = State::refused;
      break;
    case Handshake::State::proven:
      // Any user can bind an abstract Unix name. The secret is proven, but descriptors must go only
      // to this user.
      state_ = address_ || is_same_user(socket_) ? State::through : State::refused;
      if (state_ == State::refused)
        error_ = environment_error(fmt::format("{} is another user's process", peer_));
      break;
  }
  return state_;
}

Deadline Client::next_try() const {
  if (!socket_) return next_try_;
  return give_up_;
}

ControlLink Client::take_line() {
  const bool local = !address_;
  std::optional<SealKeys> keys;
  if (traffic_ == Traffic::sealed && !local) keys = hand_->keys();
  return ControlLink(std::move(socket_), local, keys);
}

void Client::add_to(std::vector<pollfd>& wanted) const {
  if (state_ != State::trying || !socket_) return;
  wanted.push_back({socket_.descriptor(), connected_ ? hand_->events() : static_cast<short>(POLLOUT), 0});
}

}  // namespace weft::transport
