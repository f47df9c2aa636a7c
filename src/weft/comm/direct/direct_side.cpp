#include "weft/comm/direct/direct_side.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "weft/base/machine.h"

namespace weft::comm {
namespace {

// A rank that may run on one core only was bound to it by a launcher, and so the others to theirs.
std::int64_t cores_of_machine() {
  const int own = available_processors();
  return own > 1 ? own : std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L);
}

// Pieces are cut by it, so all ranks must think the same.
bool agree_on_oversubscription(GroupFacts& facts, std::int32_t ranks) {
  std::uint64_t cores = 0;
  const auto mine = static_cast<std::uint64_t>(cores_of_machine());
  if (facts.cores.compare_exchange_strong(cores, mine, std::memory_order_acq_rel)) cores = mine;
  return static_cast<std::uint64_t>(ranks) > cores;
}

}  // namespace

DirectSide::DirectSide(transport::Segment memory, std::int32_t own_rank, std::int32_t all_ranks,
                       const DirectTuning& how, bool threads)
    : segment(std::move(memory)),
      base(segment.data()),
      rank(own_rank),
      ranks(all_ranks),
      tuning(how),
      layout(all_ranks, how),
      one_process(threads),
      oversubscribed(agree_on_oversubscription(layout.facts(base), all_ranks)),
      patience(transport::patience_for(all_ranks)),
      bells(layout.bells(base)),
      heaps(static_cast<std::size_t>(all_ranks)) {
  bells.enter(ranks);
  if (tuning.place_threads && !one_process) {
    const std::uint64_t cores = layout.facts(base).cores.load(std::memory_order_relaxed);
    placement_.emplace(rank, ranks, ranks, static_cast<std::int32_t>(cores));
  }
  const transport::PeerMemory::Card own = memory_.introduction();
  GroupFacts::Card& card = layout.facts(base).cards[static_cast<std::size_t>(rank)];
  card.process.store(static_cast<std::uint64_t>(own.process), std::memory_order_relaxed);
  card.address.store(own.address, std::memory_order_relaxed);
  card.token.store(own.token, std::memory_order_relaxed);
  card.state.store(static_cast<std::uint64_t>(Reading::introduced), std::memory_order_release);
  patience.spins = 0;  // spin_until() does that
  // One that sleeps has to be woken up, and many are woken up one after another: among many, whoever went to
  // sleep as soon as among few would find that everyone sleeps in every call.
  patience.yields *= std::max(all_ranks / 2, 1);
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    DirectStream& stream = streams[priority];
    stream.priority = priority;
    stream.peers.resize(static_cast<std::size_t>(ranks));
    for (std::int32_t peer = 0; peer < ranks; ++peer)
      stream.peers[static_cast<std::size_t>(peer)].part = layout.rank_part(base, priority, peer);
    stream.mine = &DirectLayout::counters(stream.peers[static_cast<std::size_t>(rank)].part);
    stream.to.resize(static_cast<std::size_t>(ranks));
    stream.from.resize(static_cast<std::size_t>(ranks));
  }
}

std::optional<DirectGroup::Place> DirectSide::find(const void* address, std::size_t bytes) const {
  if (address == nullptr) return std::nullopt;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (one_process) return DirectGroup::Place{0, at};
  const auto& own = heaps[static_cast<std::size_t>(rank)];
  for (std::size_t number = 0; number < own.size(); ++number) {
    const auto begin = reinterpret_cast<std::uintptr_t>(own[number].data());
    const std::size_t size = own[number].size();
    if (at >= begin && at - begin <= size && bytes <= size - (at - begin))
      return DirectGroup::Place{static_cast<std::int32_t>(number), at - begin};
  }
  return std::nullopt;
}

std::byte* DirectSide::reach(std::int32_t owner, std::int32_t heap, std::uint64_t offset) const {
  if (one_process) return reinterpret_cast<std::byte*>(offset);  // an address like any other
  const auto& known = heaps[static_cast<std::size_t>(owner)];
  if (heap < 0 || static_cast<std::size_t>(heap) >= known.size()) return nullptr;
  const transport::Segment& memory = known[static_cast<std::size_t>(heap)];
  return offset <= memory.size() ? memory.data() + offset : nullptr;
}

bool DirectSide::can_read_memory() {
  if (all_read_) return true;
  auto& cards = layout.facts(base).cards;
  const auto state_of = [&](std::int32_t other) {
    return static_cast<Reading>(cards[static_cast<std::size_t>(other)].state.load(std::memory_order_acquire));
  };
  bool all_introduced = true, all_read = true;
  for (std::int32_t other = 0; other < ranks; ++other) {
    all_introduced &= state_of(other) != Reading::unknown;
    all_read &= state_of(other) == Reading::reads_all;
  }
  if (all_introduced && state_of(rank) == Reading::introduced) {
    bool reaches_all = true;
    for (std::int32_t other = 0; other < ranks; ++other) {
      const GroupFacts::Card& card = cards[static_cast<std::size_t>(other)];
      memory_.meet({.process = static_cast<std::int64_t>(card.process.load(std::memory_order_relaxed)),
                    .address = card.address.load(std::memory_order_relaxed),
                    .token = card.token.load(std::memory_order_relaxed)});
      reaches_all &= memory_.reaches(other);
    }
    cards[static_cast<std::size_t>(rank)].state.store(
        static_cast<std::uint64_t>(reaches_all ? Reading::reads_all : Reading::cannot),
        std::memory_order_release);
  }
  return all_read_ = all_read;
}

int DirectSide::processor() const {
  const int here = current_processor();
  if (here < 0 || here >= CPU_SETSIZE) return -1;
  auto& told = layout.facts(base).processors[static_cast<std::size_t>(rank)];
  const auto mine = static_cast<std::uint16_t>(here + 1);
  if (told.load(std::memory_order_relaxed) != mine) told.store(mine, std::memory_order_relaxed);
  return here;
}

bool DirectSide::shares_core(std::int32_t other) const {
  const int here = processor();
  return here >= 0 && here + 1 == layout.facts(base).processors[static_cast<std::size_t>(other)].load(
                                      std::memory_order_relaxed);
}

void DirectSide::place_thread() {
  if (!placement_) return;
  const std::unique_lock lock(placing_, std::try_to_lock);
  if (!lock) return;
  const GroupFacts& facts = layout.facts(base);
  for (std::int32_t other = 0; other < ranks; ++other) {
    const auto& told = facts.processors[static_cast<std::size_t>(other)];
    if (other != rank) placement_->note(other, told.load(std::memory_order_relaxed) - 1);
  }
  if (placement_->place_thread(processor(), std::chrono::steady_clock::now())) processor();
}

bool DirectSide::can_go_on() const {
  if (poisoned()) return true;
  for (std::uint32_t left = blocked_.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
    const std::uint64_t awaited =
        awaited_[static_cast<std::size_t>(std::countr_zero(left))].load(std::memory_order_relaxed);
    const auto& word = *reinterpret_cast<const SharedWord*>(base + (awaited >> 32) * sizeof(SharedWord));
    const auto now = static_cast<std::uint32_t>(word.load(std::memory_order_acquire));
    if (static_cast<std::int32_t>(now - static_cast<std::uint32_t>(awaited)) >= 0) return true;
  }
  return false;
}

void DirectSide::await(std::size_t operation, const SharedWord& word, std::uint64_t value) {
  const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&word) - base);
  awaited_[operation].store(pack_awaited(offset, value), std::memory_order_relaxed);
  blocked_.store(blocked_.load(std::memory_order_relaxed) | 1u << operation, std::memory_order_relaxed);
}

void DirectSide::await_nothing(std::size_t operation) {
  const std::uint32_t blocked = blocked_.load(std::memory_order_relaxed);
  if ((blocked >> operation & 1) != 0)
    blocked_.store(blocked & ~(1u << operation), std::memory_order_relaxed);
}

}  // namespace weft::comm
