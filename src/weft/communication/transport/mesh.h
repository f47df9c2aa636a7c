// weft/communication/transport/mesh.h -- a line between any two ranks: each calls those below it and waits for those above.
//
//   rank 0 ◀── rank 1 ◀── rank 2 ◀── rank 3
//     ▲          ▲──────────────────── │
//     └────────────────────────────────┘     within a host by its door (a Unix socket), else by its address
#pragma once
#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/caller.h"
#include "weft/communication/transport/invitation.h"
#include "weft/communication/transport/reception.h"

namespace weft::transport {

// Where a rank waits for those above it; opened before the others can know of it.
struct Doors {
  tcp::Socket local;   // a Unix socket
  tcp::Socket remote;  // empty where all ranks are on one machine
};

class Mesh {
 public:
  Mesh(std::int32_t rank, const Table& table, std::string_view key, Traffic traffic, Doors doors);

  void add_to(std::vector<pollfd>& wanted) const;
  // Moves on; fails when a rank can never be reached.
  Status step();
  bool complete() const;
  std::vector<std::int32_t> missing() const;
  // Why a rank below is missing, as far as it is known; empty for one above.
  std::string why_missing(std::int32_t rank) const;
  std::chrono::steady_clock::time_point next_try() const;

  std::vector<ControlLink> take_lines() { return std::move(lines_); }

 private:
  void let_in(Reception::Guest guest);

  std::int32_t rank_;
  std::vector<std::string> hosts_;
  Reception reception_;
  std::vector<Caller> calls_;  // by rank, those below
  std::vector<ControlLink> lines_;
};

}  // namespace weft::transport
