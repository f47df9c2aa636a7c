// weft/communication/comm/direct/direct_reach.h -- which memory of other ranks this rank can
// access, and how.
//
//   heaps     allocated buffers, mapped by every rank: a place in a peer's heap has an address here
//   private   other memory of a peer, read through the OS kernel (transport/peer_memory.h) if permitted
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/communication/comm/direct/direct.h"
#include "weft/communication/comm/direct/direct_layout.h"
#include "weft/communication/transport/peer_memory.h"
#include "weft/communication/transport/segment.h"

namespace weft::comm {

class DirectReach {
 public:
  // `one_process`: ranks are threads and share one address space. Publishes this rank's card.
  DirectReach(GroupFacts& facts, std::int32_t rank, std::int32_t ranks, bool one_process);

  void add_heap(std::int32_t owner, std::int32_t number, transport::Segment heap);
  // The location of an address in this rank's heaps.
  std::optional<DirectGroup::Place> find(const void* address, std::size_t bytes) const;
  // The local address of a location in a heap of `owner`; null if that heap is unknown.
  std::byte* reach(std::int32_t owner, std::int32_t heap, std::uint64_t offset) const;

  // Whether every rank can read every other's private memory. Each rank tries at its first query;
  // until all have tried, the result is false.
  bool all_can_read();
  bool read(std::int32_t owner, const std::byte* from, std::span<std::byte> target) const {
    return memory_.read(owner, reinterpret_cast<std::uintptr_t>(from), target);
  }

 private:
  GroupFacts& facts_;
  std::int32_t rank_, ranks_;
  bool one_process_;
  std::vector<std::vector<transport::Segment>> heaps_;  // [rank][number]
  transport::PeerMemory memory_;
  bool all_read_ = false;
};

}  // namespace weft::comm
