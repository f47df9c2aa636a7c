// weft/communication/transport/shm/neighbours.h -- shared state of a group's ranks on one machine:
// bells and event counters.
//
//          from    0    1    2
//   news of 0 [    .   17    4 ]    a row per rank: events of each rank that this one may wait for
//   news of 1 [   12    .    9 ]    signal() of a rank is the sum of its row
//
// A rank that sends or receives a message increments its counter in the peer's row and rings the
// peer's bell.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "weft/communication/transport/doorbell.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/peer_memory.h"
#include "weft/communication/transport/segment.h"
#include "weft/communication/transport/tcp/socket.h"

namespace weft::transport::shm {

class Neighbours {
 public:
  static std::size_t segment_bytes(std::int32_t ranks);

  // `segment` was zeroed when the first rank arrived. Messages of at least `single_copy_bytes` (0:
  // none) are fetched from the sender's memory, if `memory` can read it.
  Neighbours(Segment segment, std::int32_t rank, std::int32_t ranks, const Patience& patience,
             PeerMemory memory, std::int64_t single_copy_bytes);

  std::int32_t rank() const { return rank_; }
  std::int32_t ranks() const { return ranks_; }

  // Notifies `peer` that something it may wait for has been stored.
  void tell(std::int32_t peer);
  std::uint32_t signal() const;
  void wait(std::uint32_t seen, std::chrono::nanoseconds limit);

  // For a subset of a group (see mixed/endpoint.h): `names` are the ranks in the group, and
  // `other_bells` the event descriptors to ring when a bell finds its rank asleep. Call it before
  // any notification. Such ranks sleep in most calls, so a fence per ring costs less than a barrier
  // per sleep.
  void join_larger_group(std::vector<std::int32_t> names, std::vector<tcp::Socket> other_bells) {
    names_ = std::move(names);
    other_bells_ = std::move(other_bells);
    bells().enter(kMostLocalRanks);
  }
  std::int32_t name_of(std::int32_t rank) const {
    return names_.empty() ? rank : names_[static_cast<std::size_t>(rank)];
  }
  // Calls `sleep` unless signal() differs from `seen`; later events ring the event descriptor.
  template <class Sleep>
  void sleep_elsewhere(std::uint32_t seen, Sleep sleep) {
    bells().prepare(rank_);
    if (signal() == seen) sleep();
    bells().finish(rank_);
  }

  // Keeps the first fault of any connection.
  void report(WireFault fault);
  std::optional<WireFault> fault() const;

  const PeerMemory& memory() const { return memory_; }
  bool fetches(std::size_t bytes) const {
    return single_copy_bytes_ > 0 && bytes >= static_cast<std::size_t>(single_copy_bytes_);
  }

  // A posted message keeps its sender from progressing, and two ranks that send to each other would
  // deadlock. So a rank with posted messages does not sleep: after a timeout it recalls them (see
  // connection.h), that is, copies them after all.
  void add_post() { posts_.fetch_add(1, std::memory_order_relaxed); }
  void end_post() { posts_.fetch_sub(1, std::memory_order_relaxed); }
  std::uint32_t recalls() const { return recalls_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t>& news(std::int32_t of, std::int32_t from) const;
  Doorbells& bells() const { return *reinterpret_cast<Doorbells*>(segment_.data()); }

  Segment segment_;
  std::int32_t rank_, ranks_;
  Patience patience_;
  PeerMemory memory_;
  std::int64_t single_copy_bytes_;
  std::vector<std::int32_t> names_;
  std::vector<tcp::Socket> other_bells_;
  std::atomic<std::uint32_t> posts_ = 0, recalls_ = 0;

  mutable std::mutex fault_mutex_;
  std::optional<WireFault> fault_;
  std::atomic<bool> has_fault_ = false;  // for a cheap check
};

}  // namespace weft::transport::shm
