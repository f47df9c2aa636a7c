// weft/communication/transport/acceptor.h -- accepts only ranks of the job at listening sockets.
//
//   stranger, garbage, silence ──▶ dropped, without an answer
//   rank of the job            ──▶ handshake ──▶ its first frame ──▶ a Guest
//
// Nothing here blocks: add the sockets to a poll and call step(). accept_queue.h describes which
// connections may wait, and for how long: strangers have a bounded cost and delay no rank.
#pragma once
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/accept_queue.h"
#include "weft/communication/transport/control_link.h"

namespace weft::transport {

class Acceptor {
 public:
  struct AcceptedLink {
    ControlLink line;
    Frame first;
  };

  Acceptor(std::string_view key, Traffic traffic) : accept_queue_(key, traffic) {}

  // `local`: a Unix socket, which accepts only this user and root.
  void open(tcp::Socket listener, bool local) { accept_queue_.open(std::move(listener), local); }

  void add_to(std::vector<pollfd>& wanted) const;
  // The ranks accepted since the last call. Fails if no more can be accepted.
  Result<std::vector<AcceptedLink>> step();

  const AcceptQueue& accept_queue() const { return accept_queue_; }

 private:
  enum class Fate : std::uint8_t { waits, comes_in, dropped };

  static Fate look_at(ControlLink& line, Frame& first);

  AcceptQueue accept_queue_;
  std::list<ControlLink> newcomers_;  // authenticated, but without a first frame yet
};

}  // namespace weft::transport
