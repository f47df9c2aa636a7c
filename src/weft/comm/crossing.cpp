#include "weft/comm/crossing.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace weft::comm {

Crossing crossing_of(const collective::Moves& moves, std::int32_t hosts) {
  const std::int32_t local = moves.collective.ranks / hosts;
  std::map<collective::Place, std::int32_t> behind;  // how many crossings what lies at a place has behind it
  // The same of what a wire (sender, receiver, channel) carries first.
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t> first;
  std::vector<std::int64_t> leaving(static_cast<std::size_t>(hosts));
  Crossing crossing;
  for (const collective::Move& move : moves.moves) {
    const std::int32_t home = move.from.rank / local;
    const bool crosses = home != move.to.rank / local;
    if (crosses) leaving[static_cast<std::size_t>(home)] += move.count;
    for (std::int32_t chunk = 0; chunk < move.count; ++chunk) {
      collective::Place from = move.from, to = move.to;
      from.index += chunk;
      to.index += chunk;
      const auto known = behind.find(from);
      const std::int32_t before = known == behind.end() ? 0 : known->second;
      const std::int32_t come = before + (crosses ? 1 : 0);
      std::int32_t& there = behind[to];
      there = move.verb == collective::Move::Verb::reduce ? std::max(there, come) : come;
      crossing.steps = std::max(crossing.steps, there);
      if (move.local()) continue;
      const auto wire = first.try_emplace({move.from.rank, move.to.rank, move.channel}, before).first;
      if (wire->second == 0) crossing.in_turn = std::max(crossing.in_turn, before);
    }
  }
  const std::int64_t chunks = std::max<std::int64_t>(collective::loop_chunks(moves.collective), 1);
  crossing.wire = static_cast<double>(*std::ranges::max_element(leaving)) / static_cast<double>(chunks);
  return crossing;
}

}  // namespace weft::comm
