// weft/sim/link_sharing.h -- collectives under way at once share the wires that they pass.
//
//   wire 0   [== a ==============]            a alone: its full pace
//                   [== b =====]              while b is under way each has half of the rank's port
//
// A rank's port on a wire is split equally among the transfers it takes part in; a transfer among several
// ranks goes at the pace of the one that has least for it. What it leaves unused elsewhere is not handed on:
// in a mesh the ranks of a group are equally busy. Transfers that have a wire to themselves cost one event.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace weft::sim {

class LinkSharing {
 public:
  // `ranks` with a port on each of `wires`.
  LinkSharing(std::size_t ranks, std::size_t wires) : ports_(ranks * wires), wires_(wires) {}

  // A transfer that takes `seconds` when it has the ports of all `members` to itself, and its number. The
  // members must stay where they are until it is finished.
  std::uint32_t start(double now, std::size_t wire, std::span<const std::uint32_t> members, double seconds);
  void finish(double now, std::uint32_t transfer);

  // When it ends as things are; may change whenever another starts or finishes.
  double end(std::uint32_t transfer) const { return transfers_[transfer].end; }
  // Transfers whose end is new since this was last cleared. One may be listed twice.
  std::vector<std::uint32_t>& changed() { return changed_; }

 private:
  struct Transfer {
    std::span<const std::uint32_t> members;
    std::size_t wire = 0;
    double left = 0;  // seconds of full pace, at `since`
    double since = 0;
    double end = 0;
    std::uint32_t sharers = 1;  // its pace is one over this
  };

  std::vector<std::uint32_t>& port(std::uint32_t rank, std::size_t wire) {
    return ports_[rank * wires_ + wire];
  }
  void settle(double now, std::uint32_t transfer);
  void settle_neighbours(double now, std::uint32_t transfer);

  std::vector<std::vector<std::uint32_t>> ports_;  // the transfers under way on each
  std::size_t wires_;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_, changed_;
};

}  // namespace weft::sim
