#include "weft/program/waits.h"

#include <algorithm>
#include <map>

namespace weft::program {
namespace {

using TaskList = std::vector<std::uint32_t>;

// Memory as segments, each with who wrote it last and who has read it since.
class Scoreboard {
 public:
  void read(std::uint32_t task, std::int64_t begin, std::int64_t end, TaskList& waits) {
    visit(begin, end, [&](Segment& segment) {
      waits.insert(waits.end(), segment.writers.begin(), segment.writers.end());
      segment.readers.push_back(task);
    });
  }

  void write(std::uint32_t task, std::int64_t begin, std::int64_t end, TaskList& waits) {
    visit(begin, end, [&](Segment& segment) {
      // Whoever wrote it before the readers is done when they are.
      const TaskList& before = segment.readers.empty() ? segment.writers : segment.readers;
      waits.insert(waits.end(), before.begin(), before.end());
      segment.writers.assign(1, task);
      segment.readers.clear();
    });
  }

 private:
  struct Segment {
    std::int64_t end;
    TaskList writers, readers;
  };

  // Calls `act` on segments that cover [begin, end) exactly.
  template <class Act>
  void visit(std::int64_t begin, std::int64_t end, Act act) {
    if (begin >= end) return;
    split(begin);
    split(end);
    std::int64_t at = begin;
    auto next = segments_.lower_bound(begin);
    while (at < end) {
      if (next == segments_.end() || next->first > at) {
        const std::int64_t gap_end = next == segments_.end() ? end : std::min(end, next->first);
        next = segments_.emplace_hint(next, at, Segment{gap_end, {}, {}});
      }
      act(next->second);
      at = next->second.end;
      ++next;
    }
  }

  void split(std::int64_t at) {
    auto after = segments_.upper_bound(at);
    if (after == segments_.begin()) return;
    auto holder = std::prev(after);
    if (holder->first == at || holder->second.end <= at) return;
    Segment right = holder->second;
    holder->second.end = at;
    segments_.emplace_hint(after, at, std::move(right));
  }

  std::map<std::int64_t, Segment> segments_;  // by where they begin
};

}  // namespace

void find_waits(std::span<Task> tasks, std::span<const Buffer> buffers) {
  Scoreboard board;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    Task& task = tasks[t];
    const auto id = static_cast<std::uint32_t>(t);
    TaskList waits;
    for (const Extent& extent : task.reads) {
      const std::int64_t offset = buffers[extent.buffer.value].offset;
      board.read(id, offset + extent.begin, offset + extent.end, waits);
    }
    for (const Extent& extent : task.writes) {
      const std::int64_t offset = buffers[extent.buffer.value].offset;
      board.write(id, offset + extent.begin, offset + extent.end, waits);
    }
    std::ranges::sort(waits);
    const auto repeated = std::ranges::unique(waits);
    waits.erase(repeated.begin(), repeated.end());
    std::erase(waits, id);
    // Those that another one waits for already are waited for through it.
    TaskList implied;
    for (const std::uint32_t wait : waits)
      implied.insert(implied.end(), tasks[wait].waits.begin(), tasks[wait].waits.end());
    std::ranges::sort(implied);
    std::erase_if(waits, [&](std::uint32_t wait) { return std::ranges::binary_search(implied, wait); });
    task.waits = std::move(waits);
  }
}

}  // namespace weft::program
