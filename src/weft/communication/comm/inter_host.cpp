#include "weft/communication/comm/inter_host.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace weft::comm {

namespace {

using collective::Move;
using collective::Place;

// Calls `visit(from, to)` for every chunk of a move.
template <class Visit>
void for_each_chunk(const Move& move, const Visit& visit) {
  Place from = move.from, to = move.to;
  for (std::int32_t chunk = 0; chunk < move.count; ++chunk, ++from.index, ++to.index) visit(from, to);
}

// For each move, whether any of its data goes inter-host in this move or a later one.
std::vector<bool> find_inter_host_ahead(const std::vector<Move>& moves, std::int32_t local) {
  std::vector<bool> ahead(moves.size());
  std::map<Place, bool> leads;  // whether the data at a place goes inter-host later
  for (std::size_t i = moves.size(); i-- > 0;) {
    const Move& move = moves[i];
    const bool inter_host_move = move.from.rank / local != move.to.rank / local;
    for_each_chunk(move, [&](const Place& from, const Place& to) {
      bool& there = leads[to];
      const bool goes_on = inter_host_move || there;
      if (move.verb != Move::Verb::reduce) there = false;  // previous contents are overwritten
      leads[from] = leads[from] || goes_on;
      ahead[i] = ahead[i] || goes_on;
    });
  }
  return ahead;
}

}  // namespace

InterHost inter_host_of(const collective::Moves& moves, std::int32_t hosts) {
  const std::int32_t local = moves.collective.ranks / hosts;
  const std::vector<bool> ahead = find_inter_host_ahead(moves.moves, local);
  std::map<Place, std::int32_t> behind;  // inter-host moves that the data at a place has made
  // Connections (sender, receiver, channel) whose first data has made no inter-host move and will
  // make one.
  std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> begin;
  std::vector<std::int64_t> leaving(static_cast<std::size_t>(hosts));
  InterHost inter_host;
  for (std::size_t i = 0; i < moves.moves.size(); ++i) {
    const Move& move = moves.moves[i];
    const std::int32_t home = move.from.rank / local;
    const bool inter_host_move = home != move.to.rank / local;
    if (inter_host_move) leaving[static_cast<std::size_t>(home)] += move.count;
    for_each_chunk(move, [&](const Place& from, const Place& to) {
      const auto known = behind.find(from);
      const std::int32_t before = known == behind.end() ? 0 : known->second;
      const std::int32_t come = before + (inter_host_move ? 1 : 0);
      std::int32_t& there = behind[to];
      there = move.verb == Move::Verb::reduce ? std::max(there, come) : come;
      inter_host.steps = std::max(inter_host.steps, there);
      if (move.local()) return;
      const std::tuple wire{move.from.rank, move.to.rank, move.channel};
      if (before == 0 && ahead[i]) begin.insert(wire);
      if (begin.contains(wire)) inter_host.in_turn = std::max(inter_host.in_turn, before);
    });
  }
  const std::int64_t chunks = std::max<std::int64_t>(collective::loop_chunks(moves.collective), 1);
  inter_host.wire = static_cast<double>(*std::ranges::max_element(leaving)) / static_cast<double>(chunks);
  return inter_host;
}

}  // namespace weft::comm
