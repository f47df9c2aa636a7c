// weft/communication/transport/accept_queue.h -- accept queue: connections to a listening socket wait here
// until authenticated.
//
//   stranger, garbage, silence ──▶ dropped, without an answer
//   rank of the job            ──▶ handshake ──▶ Proven: no longer dropped
//
// Nothing here blocks: add the sockets to a poll and call step(). There are kMostAtOnce places, at
// most half of them for clients of one address. When they are taken, a new connection replaces one
// that has sent nothing yet, or one that has sent no proof within kProofTime of its hello.
// Otherwise it is dropped and reconnects. So a flood costs a bounded amount and never displaces a
// client that is authenticating.
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

class AcceptQueue {
 public:
  static constexpr std::chrono::milliseconds kPatience{5'000};  // per client, from connection to proof
  static constexpr std::chrono::milliseconds kProofTime{250};   // more than a round trip
  static constexpr std::size_t kMostAtOnce = 256, kMostOfOneAddress = kMostAtOnce / 2;

  struct Proven {
    tcp::Socket socket;
    bool local = false;
    std::optional<SealKeys> keys;  // if traffic is sealed, except within a machine
  };

  AcceptQueue(std::string_view key, Traffic traffic) : key_(key), traffic_(traffic) {}

  // `local`: a Unix socket, which accepts only this user and root.
  void open(tcp::Socket listener, bool local);
  void close();

  void add_to(std::vector<pollfd>& wanted) const;
  // The connections authenticated since the last call. Fails if no more can be accepted.
  Result<std::vector<Proven>> step();

  std::size_t waiting() const { return callers_.size(); }
  // Clients that used our protocol but did not know the secret, or had the other kind of traffic.
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
    std::string address;  // empty: this machine
    Deadline until;
    Deadline overdue = Deadline::max();  // deadline of its proof, set by its hello
  };

  Status accept(std::vector<Proven>& proven);
  bool make_place(const std::string& address);
  bool evict_client(std::string_view address);  // empty: of any address
  static Handshake::State listen_to(Waiting& caller, Deadline now);
  void hear(Waiting& caller, std::vector<Proven>& proven);

  std::string key_;
  Traffic traffic_;
  std::vector<Door> doors_;
  std::list<Waiting> callers_;  // in order of arrival
  std::int32_t refused_ = 0, unlike_ = 0;
};

}  // namespace weft::transport
