#include "weft/program/tasks/without_overlap.h"

#include <algorithm>

namespace weft::program {

std::vector<std::vector<std::uint32_t>> waits_without_overlap(std::span<const Task> tasks,
                                                              std::span<const std::uint32_t> moves) {
  std::vector<std::vector<std::uint32_t>> waits;
  waits.reserve(tasks.size());
  std::uint32_t since = 0;  // the first task after the last move
  std::size_t next = 0;
  for (std::uint32_t t = 0; t < tasks.size(); ++t) {
    std::vector<std::uint32_t>& mine = waits.emplace_back(tasks[t].waits);
    const bool is_move = next < moves.size() && moves[next] == t;
    if (since > 0) mine.push_back(since - 1);
    if (is_move) {
      for (std::uint32_t before = since; before < t; ++before) mine.push_back(before);
      since = t + 1;
      ++next;
    }
    std::ranges::sort(mine);
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
  }
  return waits;
}

}  // namespace weft::program
