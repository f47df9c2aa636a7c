// weft/predict/sim/link_sharing.h -- collectives under way at once share the wires that they pass.
//
//   wire 0   [== a ==============]            a alone: its full pace
//                   [== b =====]              while b is under way each has half of the rank's port
//
//   ports    rank 0: a, b      b, c and d have a third of rank 1's port each; b takes no more than that
//            rank 1: b, c, d   of rank 0's, and a has the two thirds that are left
//
// Every rank has a port on every wire. A transfer passes the ports of all its members at one pace, and ports
// are shared max-min fairly: none could be faster without slowing one that is no faster than it. It is the
// network of network.h, with ports for links and seconds of a transfer that is alone for bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "weft/predict/sim/network.h"

namespace weft::sim {

class LinkSharing {
 public:
  // `ranks` with a port on each of `wires`.
  LinkSharing(std::size_t ranks, std::size_t wires);

  // The ports that transfers among these ranks pass.
  std::int32_t add_route(std::size_t wire, std::span<const std::uint32_t> members);

  // A transfer that takes `seconds` when it has all its ports to itself, and its number.
  std::int32_t start(double now, std::int32_t route, double seconds);
  void finish(double now, std::int32_t transfer);

  // When the next one ends as things are, and which; may change whenever another starts or finishes.
  std::optional<std::pair<double, std::int32_t>> next() { return network_.next(); }

 private:
  std::size_t wires_;
  Network network_;
};

}  // namespace weft::sim
