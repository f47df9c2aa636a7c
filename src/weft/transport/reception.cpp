#include "weft/transport/reception.h"

namespace weft::transport {

void Reception::add_to(std::vector<pollfd>& wanted) const {
  porch_.add_to(wanted);
  for (const Newcomer& each : newcomers_) wanted.push_back({each.line.descriptor(), POLLIN, 0});
}

Result<std::vector<Reception::Guest>> Reception::step() {
  WEFT_TRY(proven, porch_.step());
  for (Porch::Proven& each : proven)
    newcomers_.push_back({ControlLink(std::move(each.socket), each.local, each.keys),
                          std::chrono::steady_clock::now() + Porch::kPatience});
  std::vector<Guest> guests;
  for (auto at = newcomers_.begin(); at != newcomers_.end();) {
    Frame first;
    const Fate fate = look_at(*at, first);
    if (fate == Fate::comes_in) guests.push_back({std::move(at->line), std::move(first)});
    at = fate == Fate::waits ? std::next(at) : newcomers_.erase(at);
  }
  return guests;
}

Reception::Fate Reception::look_at(Newcomer& newcomer, Frame& first) {
  std::vector<Frame> frames = newcomer.line.receive();
  if (frames.empty()) {
    const bool waits = newcomer.line.state() == ControlLink::State::open &&
                       std::chrono::steady_clock::now() < newcomer.until;
    return waits ? Fate::waits : Fate::dropped;
  }
  first = std::move(frames.front());
  // Nobody says more before it was answered.
  return frames.size() == 1 ? Fate::comes_in : Fate::dropped;
}

}  // namespace weft::transport
