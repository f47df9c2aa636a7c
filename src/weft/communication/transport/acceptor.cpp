#include "weft/communication/transport/acceptor.h"

namespace weft::transport {

void Acceptor::add_to(std::vector<pollfd>& wanted) const {
  accept_queue_.add_to(wanted);
  for (const ControlLink& line : newcomers_) wanted.push_back({line.descriptor(), POLLIN, 0});
}

Result<std::vector<Acceptor::AcceptedLink>> Acceptor::step() {
  WEFT_TRY(proven, accept_queue_.step());
  for (AcceptQueue::Proven& each : proven)
    newcomers_.emplace_back(std::move(each.socket), each.local, each.keys);
  std::vector<AcceptedLink> guests;
  for (auto at = newcomers_.begin(); at != newcomers_.end();) {
    Frame first;
    const Fate fate = look_at(*at, first);
    if (fate == Fate::comes_in) guests.push_back({std::move(*at), std::move(first)});
    at = fate == Fate::waits ? std::next(at) : newcomers_.erase(at);
  }
  return guests;
}

Acceptor::Fate Acceptor::look_at(ControlLink& line, Frame& first) {
  std::vector<Frame> frames = line.receive();
  if (frames.empty()) return line.state() == ControlLink::State::open ? Fate::waits : Fate::dropped;
  first = std::move(frames.front());
  // A client sends nothing more before it gets an answer.
  return frames.size() == 1 ? Fate::comes_in : Fate::dropped;
}

}  // namespace weft::transport
