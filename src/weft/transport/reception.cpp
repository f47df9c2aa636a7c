#include "weft/transport/reception.h"

#include "weft/transport/unix_socket.h"

namespace weft::transport {

void Reception::open(tcp::Socket listener, bool local) { doors_.push_back({std::move(listener), local}); }

void Reception::add_to(std::vector<pollfd>& wanted) const {
  for (const Door& door : doors_) wanted.push_back({door.listener.descriptor(), POLLIN, 0});
  for (const Newcomer& each : newcomers_) {
    const bool proven = each.hand.state() == Handshake::State::proven;
    wanted.push_back({each.line.descriptor(), proven ? static_cast<short>(POLLIN) : each.hand.events(), 0});
  }
}

Result<std::vector<Reception::Guest>> Reception::step() {
  WEFT_TRY_STATUS(accept());
  std::vector<Guest> guests;
  for (auto at = newcomers_.begin(); at != newcomers_.end();) {
    Frame first;
    const Fate fate = look_at(*at, first);
    if (fate == Fate::comes_in) guests.push_back({std::move(at->line), std::move(first)});
    at = fate == Fate::waits ? std::next(at) : newcomers_.erase(at);
  }
  return guests;
}

Status Reception::accept() {
  for (const Door& door : doors_) {
    // At most a full house in a turn: those who are let in already come first.
    for (std::size_t turn = 0; turn < kMostAtOnce; ++turn) {
      WEFT_TRY(socket, tcp::accept(door.listener));
      if (!socket) break;
      if (door.local && !is_same_user(socket)) continue;
      if (newcomers_.size() == kMostAtOnce) newcomers_.pop_front();
      newcomers_.push_back({Handshake(key_, Role::listener), ControlLink(std::move(socket), door.local),
                            std::chrono::steady_clock::now() + kPatience});
    }
  }
  return {};
}

Reception::Fate Reception::look_at(Newcomer& newcomer, Frame& first) {
  if (std::chrono::steady_clock::now() >= newcomer.until) return Fate::dropped;
  const Handshake::State state = newcomer.hand.step(newcomer.line.descriptor());
  if (state == Handshake::State::going) return Fate::waits;
  if (state == Handshake::State::no_secret) ++refused_;
  if (state != Handshake::State::proven) return Fate::dropped;
  std::vector<Frame> frames = newcomer.line.receive();
  if (frames.empty()) return newcomer.line.state() == ControlLink::State::open ? Fate::waits : Fate::dropped;
  first = std::move(frames.front());
  // Nobody says more before it was answered.
  return frames.size() == 1 ? Fate::comes_in : Fate::dropped;
}

}  // namespace weft::transport
