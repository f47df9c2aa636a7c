// weft/transport/reception.h -- lets ranks of the job in at listening sockets, and nobody else.
//
//   stranger, garbage, silence ──▶ dropped, without a word
//   rank of the job            ──▶ handshake ──▶ its first frame ──▶ a Guest
//
// Nothing here waits: put the sockets into a poll and call step(). Whoever has not come through within
// kPatience is dropped, and the oldest when there are kMostAtOnce: strangers cost a bounded amount and hold
// up nobody.
#pragma once
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/transport/control_link.h"
#include "weft/transport/handshake.h"

namespace weft::transport {

class Reception {
 public:
  static constexpr std::chrono::milliseconds kPatience{5'000};
  static constexpr std::size_t kMostAtOnce = 256;

  struct Guest {
    ControlLink line;
    Frame first;
  };

  explicit Reception(std::string_view key) : key_(key) {}

  // `local`: a Unix socket, where only this user and root are let in.
  void open(tcp::Socket listener, bool local);

  void add_to(std::vector<pollfd>& wanted) const;
  // Who has come through since. Fails when no more can be let in.
  Result<std::vector<Guest>> step();

  // How many spoke our protocol and did not know the secret.
  std::int32_t refused() const { return refused_; }

 private:
  struct Door {
    tcp::Socket listener;
    bool local;
  };
  struct Newcomer {
    Handshake hand;
    ControlLink line;
    Deadline until;
  };
  enum class Fate : std::uint8_t { waits, comes_in, dropped };

  Status accept();
  Fate look_at(Newcomer& newcomer, Frame& first);

  std::string key_;
  std::vector<Door> doors_;
  std::list<Newcomer> newcomers_;
  std::int32_t refused_ = 0;
};

}  // namespace weft::transport
