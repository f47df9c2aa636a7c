#include "weft/collectives/reshard/timing.h"

#include <algorithm>
#include <unordered_map>

namespace weft::reshard {
namespace {

std::int64_t common_elements(const Box& a, const Box& b) {
  std::int64_t elements = 1;
  for (std::size_t dim = 0; dim < a.size(); ++dim) elements *= plan::overlap(a[dim], b[dim]).size;
  return elements;
}

}  // namespace

Timing time_moves(const Reshard& reshard, std::span<const Move> moves, const Links& links) {
  Timing timing;
  std::unordered_map<std::int32_t, double> sends_until, receives_until;  // per host
  std::unordered_map<std::int32_t, std::vector<std::size_t>> arrivals;   // per device
  for (const Move& move : moves) {
    double ready = 0;
    if (move.relay) {
      // Each element arrives once, and forwarded data arrived recently, so the search is short.
      const std::vector<std::size_t>& earlier = arrivals[move.from];
      std::int64_t missing = elements_of(move.box);
      for (std::size_t i = earlier.size(); i-- > 0 && missing > 0;) {
        const std::int64_t common = common_elements(moves[earlier[i]].box, move.box);
        if (common == 0) continue;
        missing -= common;
        ready = std::max(ready, timing.moves[earlier[i]].end);
      }
    }
    MoveTime time{ready, ready};
    const std::int32_t from = reshard.hosts[move.from], to = reshard.hosts[move.to];
    if (from != to) {
      double& sender = sends_until[from];
      double& receiver = receives_until[to];
      time.start = std::max({ready, sender, receiver});
      time.end = time.start +
                 static_cast<double>(elements_of(move.box) * reshard.element_bytes) / links.bytes_per_second;
      sender = receiver = time.end;
    }
    arrivals[move.to].push_back(timing.moves.size());
    timing.moves.push_back(time);
    timing.seconds = std::max(timing.seconds, time.end);
  }
  return timing;
}

}  // namespace weft::reshard
