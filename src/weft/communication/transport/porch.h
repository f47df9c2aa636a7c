// weft/communication/transport/porch.h -- where those who call at a listening socket wait until they have proven themselves.
//
//   stranger, garbage, silence ──▶ dropped, without a word
//   rank of the job            ──▶ handshake ──▶ Proven: from here on nobody puts it out
//
// Nothing here waits: put the sockets into a poll and call step(). There are kMostAtOnce places, half of them
// at most for callers of one address. When they are taken, whoever comes is let in only for one who has said
// nothing yet, or who has had kProofTime since its hello and brought no proof; else it is cut off and calls
// again. So a flood costs a bounded amount, and never a place of one who has begun to prove itself.
#pragma once
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/handshake.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport {

class Porch {
 public:
  static constexpr std::chrono::milliseconds kPatience{5'000};  // with anyone, from its call to its proof
  static constexpr std::chrono::milliseconds kProofTime{250};   // a way there and back takes less
  static constexpr std::size_t kMostAtOnce = 256, kMostOfOneAddress = kMostAtOnce / 2;

  struct Proven {
    tcp::Socket socket;
    bool local = false;
    std::optional<SealKeys> keys;  // of sealed traffic, but within a machine
  };

  Porch(std::string_view key, Traffic traffic) : key_(key), traffic_(traffic) {}

  // `local`: a Unix socket, where only this user and root are let in.
  void open(tcp::Socket listener, bool local);
  void close();

  void add_to(std::vector<pollfd>& wanted) const;
  // Who has proven itself since. Fails when no more can be let in.
  Result<std::vector<Proven>> step();

  std::size_t waiting() const { return callers_.size(); }
  // How many spoke our protocol and did not know the secret, or were not of our kind of traffic.
  std::int32_t refused() const { return refused_; }
  std::int32_t unlike() const { return unlike_; }

 private:
  struct Door {
    tcp::Socket listener;
    bool local;
  };
  struct Waiting {
    Handshake hand;
    tcp::Socket socket;
    bool local;
    std::string address;  // empty: of this machine
    Deadline until;
    Deadline overdue = Deadline::max();  // for its proof, since it has said hello
  };

  Status accept(std::vector<Proven>& proven);
  bool make_place(const std::string& address);
  bool put_out(std::string_view address);  // of any, where it is empty
  static Handshake::State listen_to(Waiting& caller, Deadline now);
  void hear(Waiting& caller, std::vector<Proven>& proven);

  std::string key_;
  Traffic traffic_;
  std::vector<Door> doors_;
  std::list<Waiting> callers_;  // as they came
  std::int32_t refused_ = 0, unlike_ = 0;
};

}  // namespace weft::transport
