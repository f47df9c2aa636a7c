#include "weft/sim/link_sharing.h"

#include <algorithm>

namespace weft::sim {

std::uint32_t LinkSharing::start(double now, std::size_t wire, std::span<const std::uint32_t> members,
                                 double seconds) {
  std::uint32_t number = 0;
  if (free_.empty()) {
    number = static_cast<std::uint32_t>(transfers_.size());
    transfers_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  transfers_[number] = {members, wire, seconds, now, now + seconds, 1};
  for (const std::uint32_t rank : members) port(rank, wire).push_back(number);
  changed_.push_back(number);
  settle_neighbours(now, number);
  return number;
}

void LinkSharing::finish(double now, std::uint32_t transfer) {
  const Transfer& done = transfers_[transfer];
  for (const std::uint32_t rank : done.members) std::erase(port(rank, done.wire), transfer);
  settle_neighbours(now, transfer);
  free_.push_back(transfer);
}

void LinkSharing::settle_neighbours(double now, std::uint32_t transfer) {
  const Transfer& at = transfers_[transfer];
  for (const std::uint32_t rank : at.members)
    for (const std::uint32_t other : port(rank, at.wire)) settle(now, other);
}

void LinkSharing::settle(double now, std::uint32_t transfer) {
  Transfer& at = transfers_[transfer];
  std::size_t sharers = 1;
  for (const std::uint32_t rank : at.members) sharers = std::max(sharers, port(rank, at.wire).size());
  if (sharers == at.sharers) return;
  at.left = std::max(0.0, at.left - (now - at.since) / at.sharers);
  at.since = now;
  at.sharers = static_cast<std::uint32_t>(sharers);
  at.end = now + at.left * at.sharers;
  changed_.push_back(transfer);
}

}  // namespace weft::sim
