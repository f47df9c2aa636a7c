#include "weft/collectives/one_sided/counter_matching.h"

#include <map>
#include <utility>

namespace weft::collective {

CounterNumbers::CounterNumbers(const OneSided& plan) : plan_(plan) {
  for (const OneSidedRank& rank : plan.ranks) {
    first_.push_back(count_);
    count_ +=
        static_cast<std::int32_t>(rank.memory_peers.size() + rank.port_peers.size() + rank.semaphores.size());
  }
  other_end_.assign(static_cast<std::size_t>(count_), -1);
  pair_ends(Path::memory);
  pair_ends(Path::port);
}

// The k-th channel from a to b ends at the k-th channel from b to a.
void CounterNumbers::pair_ends(Path path) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> ends;
  for (std::size_t rank = 0; rank < plan_.ranks.size(); ++rank) {
    const auto& peers = path == Path::memory ? plan_.ranks[rank].memory_peers : plan_.ranks[rank].port_peers;
    for (std::size_t i = 0; i < peers.size(); ++i)
      ends[{static_cast<std::int32_t>(rank), peers[i]}].push_back(
          channel(static_cast<std::int32_t>(rank), path, static_cast<std::int32_t>(i)));
  }
  for (const auto& [pair, own] : ends) {
    const auto theirs = ends.find({pair.second, pair.first});
    if (theirs == ends.end()) continue;
    for (std::size_t k = 0; k < own.size() && k < theirs->second.size(); ++k)
      other_end_[static_cast<std::size_t>(own[k])] = theirs->second[k];
  }
}

std::int32_t CounterNumbers::channel(std::int32_t rank, Path path, std::int32_t channel) const {
  const auto& own = plan_.ranks[static_cast<std::size_t>(rank)];
  const auto memory = static_cast<std::int32_t>(own.memory_peers.size());
  return first_[static_cast<std::size_t>(rank)] + (path == Path::memory ? 0 : memory) + channel;
}

std::int32_t CounterNumbers::semaphore(std::int32_t rank, std::int32_t id) const {
  const auto& own = plan_.ranks[static_cast<std::size_t>(rank)];
  return first_[static_cast<std::size_t>(rank)] +
         static_cast<std::int32_t>(own.memory_peers.size() + own.port_peers.size()) + id;
}

std::int32_t CounterNumbers::other_end(std::int32_t rank, Path path, std::int32_t channel) const {
  return other_end_[static_cast<std::size_t>(this->channel(rank, path, channel))];
}

std::int32_t CounterNumbers::initial(std::int32_t counter) const {
  for (std::size_t rank = plan_.ranks.size(); rank-- > 0;) {
    if (counter < first_[rank]) continue;
    const std::int32_t id = counter - semaphore(static_cast<std::int32_t>(rank), 0);
    return id < 0 ? 0 : plan_.ranks[rank].semaphores[static_cast<std::size_t>(id)];
  }
  return 0;
}

void match_counters(const CounterUse& use, std::int32_t initial, OrderEdges& edges) {
  std::map<std::int64_t, std::int64_t> taken;  // per block
  const auto total = static_cast<std::int64_t>(use.raises.size());
  for (const CounterEvent& take : use.takes) {
    const std::int64_t needed = ++taken[take.block] - initial;
    // Per raising block: the raise without which all other raises together would not suffice.
    for (std::size_t first = 0, end = 0; first < use.raises.size(); first = end) {
      while (end < use.raises.size() && use.raises[end].block == use.raises[first].block) ++end;
      const std::int64_t others = total - static_cast<std::int64_t>(end - first);
      if (needed <= others || needed > total) continue;
      const CounterEvent& raise = use.raises[first + static_cast<std::size_t>(needed - others) - 1];
      edges.add(raise.node, take.node, raise.relaxed || take.relaxed);
    }
  }
}

}  // namespace weft::collective
