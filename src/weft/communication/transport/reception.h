// weft/communication/transport/reception.h -- accepts only ranks of the job at listening sockets.
//
//   stranger, garbage, silence ──▶ dropped, without an answer
//   rank of the job            ──▶ handshake ──▶ its first frame ──▶ a Guest
//
// Nothing here blocks: add the sockets to a poll and call step(). porch.h describes which
// connections may wait, and for how long: strangers have a bounded cost and delay no rank.
#pragma once
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/control_link.h"
#include "weft/communication/transport/porch.h"

namespace weft::transport {

class Reception {
 public:
  struct Guest {
    ControlLink line;
    Frame first;
  };

  Reception(std::string_view key, Traffic traffic) : porch_(key, traffic) {}

  // `local`: a Unix socket, which accepts only this user and root.
  void open(tcp::Socket listener, bool local) { porch_.open(std::move(listener), local); }

  void add_to(std::vector<pollfd>& wanted) const;
  // The ranks accepted since the last call. Fails if no more can be accepted.
  Result<std::vector<Guest>> step();

  const Porch& porch() const { return porch_; }

 private:
  enum class Fate : std::uint8_t { waits, comes_in, dropped };

  static Fate look_at(ControlLink& line, Frame& first);

  Porch porch_;
  std::list<ControlLink> newcomers_;  // authenticated, but without a first frame yet
};

}  // namespace weft::transport
