// weft/communication/transport/reception.h -- lets ranks of the job in at listening sockets, and nobody else.
//
//   stranger, garbage, silence ──▶ dropped, without a word
//   rank of the job            ──▶ handshake ──▶ its first frame ──▶ a Guest
//
// Nothing here waits: put the sockets into a poll and call step(). Who may wait, and for how long, is told in
// porch.h: strangers cost a bounded amount and hold up nobody.
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

  // `local`: a Unix socket, where only this user and root are let in.
  void open(tcp::Socket listener, bool local) { porch_.open(std::move(listener), local); }

  void add_to(std::vector<pollfd>& wanted) const;
  // Who has come through since. Fails when no more can be let in.
  Result<std::vector<Guest>> step();

  const Porch& porch() const { return porch_; }

 private:
  enum class Fate : std::uint8_t { waits, comes_in, dropped };

  static Fate look_at(ControlLink& line, Frame& first);

  Porch porch_;
  std::list<ControlLink> newcomers_;  // of the job, whose first frames have not come yet
};

}  // namespace weft::transport
