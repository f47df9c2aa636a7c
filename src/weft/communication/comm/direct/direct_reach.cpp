#include "weft/communication/comm/direct/direct_reach.h"

namespace weft::comm {

DirectReach::DirectReach(GroupFacts& facts, std::int32_t rank, std::int32_t ranks, bool one_process)
    : facts_(facts),
      rank_(rank),
      ranks_(ranks),
      one_process_(one_process),
      heaps_(static_cast<std::size_t>(ranks)) {
  const transport::PeerMemory::Card own = memory_.introduction();
  GroupFacts::Card& card = facts_.cards[static_cast<std::size_t>(rank)];
  card.process.store(static_cast<std::uint64_t>(own.process), std::memory_order_relaxed);
  card.address.store(own.address, std::memory_order_relaxed);
  card.token.store(own.token, std::memory_order_relaxed);
  card.state.store(static_cast<std::uint64_t>(Reading::introduced), std::memory_order_release);
}

void DirectReach::add_heap(std::int32_t owner, std::int32_t number, transport::Segment heap) {
  auto& known = heaps_[static_cast<std::size_t>(owner)];
  if (known.size() <= static_cast<std::size_t>(number)) known.resize(static_cast<std::size_t>(number) + 1);
  known[static_cast<std::size_t>(number)] = std::move(heap);
}

std::optional<DirectGroup::Place> DirectReach::find(const void* address, std::size_t bytes) const {
  if (address == nullptr) return std::nullopt;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (one_process_) return DirectGroup::Place{0, at};
  const auto& own = heaps_[static_cast<std::size_t>(rank_)];
  for (std::size_t number = 0; number < own.size(); ++number) {
    const auto begin = reinterpret_cast<std::uintptr_t>(own[number].data());
    const std::size_t size = own[number].size();
    if (at >= begin && at - begin <= size && bytes <= size - (at - begin))
      return DirectGroup::Place{static_cast<std::int32_t>(number), at - begin};
  }
  return std::nullopt;
}

std::byte* DirectReach::reach(std::int32_t owner, std::int32_t heap, std::uint64_t offset) const {
  if (one_process_) return reinterpret_cast<std::byte*>(offset);  // threads: a plain address
  const auto& known = heaps_[static_cast<std::size_t>(owner)];
  if (heap < 0 || static_cast<std::size_t>(heap) >= known.size()) return nullptr;
  const transport::Segment& memory = known[static_cast<std::size_t>(heap)];
  return offset <= memory.size() ? memory.data() + offset : nullptr;
}

bool DirectReach::all_can_read() {
  if (all_read_) return true;
  const auto state_of = [&](std::int32_t other) {
    return static_cast<Reading>(
        facts_.cards[static_cast<std::size_t>(other)].state.load(std::memory_order_acquire));
  };
  bool all_introduced = true, all_read = true;
  for (std::int32_t other = 0; other < ranks_; ++other) {
    all_introduced &= state_of(other) != Reading::unknown;
    all_read &= state_of(other) == Reading::reads_all;
  }
  if (all_introduced && state_of(rank_) == Reading::introduced) {
    bool reaches_all = true;
    for (std::int32_t other = 0; other < ranks_; ++other) {
      const GroupFacts::Card& card = facts_.cards[static_cast<std::size_t>(other)];
      memory_.meet({.process = static_cast<std::int64_t>(card.process.load(std::memory_order_relaxed)),
                    .address = card.address.load(std::memory_order_relaxed),
                    .token = card.token.load(std::memory_order_relaxed)});
      reaches_all &= memory_.reaches(other);
    }
    facts_.cards[static_cast<std::size_t>(rank_)].state.store(
        static_cast<std::uint64_t>(reaches_all ? Reading::reads_all : Reading::cannot),
        std::memory_order_release);
  }
  return all_read_ = all_read;
}

}  // namespace weft::comm
