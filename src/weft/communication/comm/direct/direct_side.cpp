#include "weft/communication/comm/direct/direct_side.h"

#include <unistd.h>

#include <algorithm>

#include "weft/base/machine.h"

namespace weft::comm {
namespace {

// A rank restricted to one core was bound by a launcher, and so were the others: use all cores.
std::int64_t cores_of_machine() {
  const int own = available_processors();
  return own > 1 ? own : std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L);
}

// The fragment size depends on it, so all ranks must agree.
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
      rank(own_rank),
      ranks(all_ranks),
      one_process(threads),
      tuning(how),
      layout(all_ranks, how),
      oversubscribed(agree_on_oversubscription(facts(), all_ranks)),
      reach(facts(), own_rank, all_ranks, threads),
      waiting(segment.data(), poison_record(), bells(), own_rank, all_ranks, oversubscribed) {
  bells().enter(ranks);
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    DirectStream& stream = streams[priority];
    stream.priority = priority;
    stream.peers.resize(static_cast<std::size_t>(ranks));
    for (std::int32_t peer = 0; peer < ranks; ++peer)
      stream.peers[static_cast<std::size_t>(peer)].part = layout.rank_part(segment.data(), priority, peer);
    stream.mine = &DirectLayout::counters(stream.peers[static_cast<std::size_t>(rank)].part);
    stream.mailbox = MailboxRing(layout.mailbox_bytes());
    stream.to.resize(static_cast<std::size_t>(ranks));
    stream.from.resize(static_cast<std::size_t>(ranks));
  }
}

}  // namespace weft::comm
