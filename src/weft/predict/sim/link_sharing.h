// weft/predict/sim/link_sharing.h -- concurrent collectives share the wires that they use.
//
//   wire 0   [== a ==============]            a alone: its full rate
//                   [== b =====]              while b is in flight each has half of the rank's port
//
//   ports    rank 0: a, b      b, c and d have a third of rank 1's port each; b uses no more than that
//            rank 1: b, c, d   of rank 0's, and a has the two thirds that are left
//
// Every rank has a port on every wire. A transfer uses the ports of all its members at one rate,
// and ports are shared max-min fairly: no transfer could be faster without slowing one that is no
// faster. It is the network of network.h, with ports as links and the seconds of an uncontended
// transfer as bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "weft/predict/sim/network.h"

namespace weft::sim {

class LinkSharing {
 public:
  // `ranks` ranks with a port on each of `wires` wires.
  LinkSharing(std::size_t ranks, std::size_t wires);

  // The ports that transfers among these ranks use.
  std::int32_t add_route(std::size_t wire, std::span<const std::uint32_t> members);

  // Starts a transfer that takes `seconds` without contention; returns its number.
  std::int32_t start(double now, std::int32_t route, double seconds);
  void finish(double now, std::int32_t transfer);

  // When the next transfer ends at current rates, and which; may change when another starts or
  // finishes.
  std::optional<std::pair<double, std::int32_t>> next() { return network_.next(); }

 private:
  std::size_t wires_;
  Network network_;
};

}  // namespace weft::sim
