#include "weft/communication/transport/accept_queue.h"

#include <algorithm>

#include "weft/communication/transport/unix_socket.h"

namespace weft::transport {

void AcceptQueue::open(tcp::Socket listener, bool local) { doors_.push_back({std::move(listener), local}); }

void AcceptQueue::close() {
  doors_.clear();
  callers_.clear();
}

void AcceptQueue::add_to(std::vector<pollfd>& wanted) const {
  for (const Door& door : doors_) wanted.push_back({door.listener.descriptor(), POLLIN, 0});
  for (const Waiting& caller : callers_)
    wanted.push_back({caller.socket.descriptor(), caller.hand.events(), 0});
}

Result<std::vector<AcceptQueue::Proven>> AcceptQueue::step() {
  std::vector<Proven> proven;
  // Pending connections come first; one poll finds the few with events.
  std::vector<pollfd> polled;
  for (const Waiting& caller : callers_)
    polled.push_back({caller.socket.descriptor(), caller.hand.events(), 0});
  ::poll(polled.data(), polled.size(), 0);
  const auto now = std::chrono::steady_clock::now();
  std::size_t at = 0;
  for (Waiting& caller : callers_) {
    const bool has_news = polled[at++].revents != 0 || caller.hand.state() != Handshake::State::going;
    if (has_news) hear(caller, proven);
    if (now >= caller.until) caller.socket.close();
  }
  WEFT_TRY_STATUS(accept(proven));
  std::erase_if(callers_, [](const Waiting& caller) { return !caller.socket; });
  return proven;
}

Status AcceptQueue::accept(std::vector<Proven>& proven) {
  for (const Door& door : doors_) {
    // At most kMostAtOnce per step.
    for (std::size_t turn = 0; turn < kMostAtOnce; ++turn) {
      Result<tcp::Socket> socket = tcp::accept(door.listener);
      // Out of descriptors: dropping an unauthenticated connection frees one.
      if (!socket.ok() && evict_client({})) continue;
      if (!socket.ok()) return callers_.empty() ? Status(socket.error()) : Status();
      if (!*socket) break;
      if (door.local && !is_same_user(*socket)) continue;
      std::string address;
      if (!door.local) {
        const Result<tcp::Address> from = tcp::remote_address(*socket);
        if (!from.ok()) continue;  // already disconnected
        address = from->host();
      }
      if (!make_place(address)) continue;
      callers_.push_back({Handshake(key_, Role::listener, traffic_), std::move(*socket), door.local,
                          std::move(address), std::chrono::steady_clock::now() + kPatience});
      hear(callers_.back(), proven);  // ranks send their hello at once
    }
  }
  return {};
}

bool AcceptQueue::make_place(const std::string& address) {
  std::erase_if(callers_, [](const Waiting& caller) { return !caller.socket; });
  if (!address.empty()) {
    const auto of_one =
        std::ranges::count_if(callers_, [&](const Waiting& caller) { return caller.address == address; });
    if (static_cast<std::size_t>(of_one) >= kMostOfOneAddress) return evict_client(address);
  }
  return callers_.size() < kMostAtOnce || evict_client({});
}

bool AcceptQueue::evict_client(std::string_view address) {
  const auto counts = [&](const Waiting& caller) { return address.empty() || caller.address == address; };
  const auto now = std::chrono::steady_clock::now();
  // Read pending data first: the client may have sent something since the last check.
  const auto is_silent = [&](Waiting& caller) {
    if (!caller.hand.has_begun()) listen_to(caller, now);
    return !caller.hand.has_begun();
  };
  auto out = std::ranges::find_if(
      callers_, [&](Waiting& caller) { return counts(caller) && !caller.local && is_silent(caller); });
  if (out == callers_.end())
    out = std::ranges::find_if(
        callers_, [&](const Waiting& caller) { return counts(caller) && now >= caller.overdue; });
  if (out == callers_.end()) return false;
  callers_.erase(out);
  return true;
}

Handshake::State AcceptQueue::listen_to(Waiting& caller, Deadline now) {
  const Handshake::State state = caller.hand.step(caller.socket.descriptor());
  if (caller.hand.has_begun() && caller.overdue == Deadline::max()) caller.overdue = now + kProofTime;
  return state;
}

void AcceptQueue::hear(Waiting& caller, std::vector<Proven>& proven) {
  const Handshake::State state = listen_to(caller, std::chrono::steady_clock::now());
  if (state == Handshake::State::going) return;
  if (state == Handshake::State::no_secret) ++refused_;
  if (state == Handshake::State::unlike) ++unlike_;
  if (state == Handshake::State::proven) {
    Proven& one = proven.emplace_back(Proven{std::move(caller.socket), caller.local, {}});
    if (traffic_ == Traffic::sealed && !caller.local) one.keys = caller.hand.keys();
  }
  caller.socket.close();
}

}  // namespace weft::transport
