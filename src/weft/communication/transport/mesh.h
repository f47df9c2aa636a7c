// weft/communication/transport/mesh.h -- a link between every two ranks: each connects to lower
// ranks and accepts higher ones.
//
//   rank 0 ◀── rank 1 ◀── rank 2 ◀── rank 3
//     ▲          ▲──────────────────── │
//     └────────────────────────────────┘     within a host by a Unix socket (its door), otherwise by address
#pragma once
#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/acceptor.h"
#include "weft/communication/transport/bootstrap_messages.h"
#include "weft/communication/transport/client.h"

namespace weft::transport {

// Listeners for higher ranks; opened before the others can learn of them.
struct MeshListeners {
  tcp::Socket local;   // a Unix socket
  tcp::Socket remote;  // empty if all ranks are on one machine
};

class Mesh {
 public:
  Mesh(std::int32_t rank, const Table& table, std::string_view key, Traffic traffic, MeshListeners doors);

  void add_to(std::vector<pollfd>& wanted) const;
  // Progresses; fails if a rank can never be reached.
  Status step();
  bool complete() const;
  std::vector<std::int32_t> missing() const;
  // Why a lower rank is missing, if known; empty for a higher one.
  std::string why_missing(std::int32_t rank) const;
  std::chrono::steady_clock::time_point next_try() const;

  std::vector<ControlLink> take_lines() { return std::move(lines_); }

 private:
  void let_in(Acceptor::AcceptedLink guest);

  std::int32_t rank_;
  std::vector<std::string> hosts_;
  Acceptor acceptor_;
  std::vector<Client> calls_;  // to lower ranks, by rank
  std::vector<ControlLink> lines_;
};

}  // namespace weft::transport
