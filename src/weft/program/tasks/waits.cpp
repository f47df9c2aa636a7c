#include "weft/program/tasks/waits.h"

#include <algorithm>
#include <map>
#include <memory_resource>

#include "weft/base/inline_vector.h"

namespace weft::program {
namespace {

using TaskList = std::vector<std::uint32_t>;
using FewTasks = InlineVector<std::uint32_t, 4>;

// Memory as segments, each with its last writers and its readers since.
class Scoreboard {
 public:
  // Finds the tasks that a task accessing [begin, end) must wait for.
  void find(std::int64_t begin, std::int64_t end, bool writes, TaskList& waits) const {
    if (begin >= end) return;
    auto next = segments_.upper_bound(begin);
    if (next != segments_.begin() && std::prev(next)->second.end > begin) --next;
    for (; next != segments_.end() && next->first < end; ++next) {
      const Segment& segment = next->second;
      waits.insert(waits.end(), segment.writers.begin(), segment.writers.end());
      if (writes) waits.insert(waits.end(), segment.readers.begin(), segment.readers.end());
    }
  }

  // The first task of a pass that writes a segment replaces the previous writers; later tasks of
  // the pass are added.
  void write(std::uint32_t task, std::uint32_t pass, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    const auto last = split(end), first = split(begin);
    // If the pass is new to the whole range, the range becomes one segment.
    if (std::none_of(first, last, [&](const auto& entry) { return entry.second.written_by == pass; })) {
      segments_.erase(first, last);
      segments_.emplace_hint(last, begin, Segment{end, {task}, {}, pass});
      return;
    }
    visit(begin, end, [&](Segment& segment) {
      if (segment.written_by != pass) {
        segment.writers.clear();
        segment.readers.clear();
        segment.written_by = pass;
      }
      segment.writers.push_back(task);
    });
  }

  void read(std::uint32_t task, std::int64_t begin, std::int64_t end) {
    visit(begin, end, [&](Segment& segment) { segment.readers.push_back(task); });
  }

 private:
  static constexpr std::uint32_t kNobody = 0xffffffff;

  struct Segment {
    std::int64_t end;
    FewTasks writers = {}, readers = {};
    std::uint32_t written_by = kNobody;  // the writers' pass, identified by its first task
  };

  // Calls `act` on segments that cover [begin, end) exactly.
  template <class Act>
  void visit(std::int64_t begin, std::int64_t end, Act act) {
    if (begin >= end) return;
    split(end);
    std::int64_t at = begin;
    auto next = split(begin);
    while (at < end) {
      if (next == segments_.end() || next->first > at) {
        const std::int64_t gap_end = next == segments_.end() ? end : std::min(end, next->first);
        next = segments_.emplace_hint(next, at, Segment{gap_end});
      }
      act(next->second);
      at = next->second.end;
      ++next;
    }
  }

  using Segments = std::pmr::map<std::int64_t, Segment>;

  // The first segment from `at` on; splits a segment that contains `at`.
  Segments::iterator split(std::int64_t at) {
    const auto after = segments_.lower_bound(at);
    if (after == segments_.begin()) return after;
    Segment& holder = std::prev(after)->second;
    if (holder.end <= at) return after;
    Segment right = holder;
    holder.end = at;
    return segments_.emplace_hint(after, at, std::move(right));
  }

  std::pmr::unsynchronized_pool_resource memory_;
  Segments segments_{&memory_};  // by begin
};

}  // namespace

void find_waits(std::span<Task> tasks, std::span<const Buffer> buffers) {
  Scoreboard board;
  TaskList implied;
  const auto each = [&](const std::vector<Extent>& extents, const auto& act) {
    for (const Extent& extent : extents) {
      const std::int64_t offset = buffers[extent.buffer.value].offset;
      act(offset + extent.begin, offset + extent.end);
    }
  };
  for (std::size_t first = 0, end = 0; first < tasks.size(); first = end) {
    // Tasks of one unit do not conflict, although their extents, which are intervals, may overlap:
    // columns of a matrix are interleaved. So they do not wait for one another, only for those of
    // an earlier pass. A new pass begins where chunk numbers restart.
    do ++end;
    while (end < tasks.size() && tasks[end].unit == tasks[first].unit &&
           tasks[end].chunk > tasks[end - 1].chunk);
    for (std::size_t t = first; t < end; ++t) {
      TaskList& waits = tasks[t].waits;
      waits.clear();
      each(tasks[t].reads, [&](std::int64_t low, std::int64_t high) { board.find(low, high, false, waits); });
      each(tasks[t].writes, [&](std::int64_t low, std::int64_t high) { board.find(low, high, true, waits); });
      std::ranges::sort(waits);
      waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
      // Drops tasks that another dependency waits for already.
      implied.clear();
      for (const std::uint32_t wait : waits)
        implied.insert(implied.end(), tasks[wait].waits.begin(), tasks[wait].waits.end());
      std::ranges::sort(implied);
      std::erase_if(waits, [&](std::uint32_t wait) { return std::ranges::binary_search(implied, wait); });
    }
    for (std::size_t t = first; t < end; ++t)
      each(tasks[t].writes, [&](std::int64_t low, std::int64_t high) {
        board.write(static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(first), low, high);
      });
    for (std::size_t t = first; t < end; ++t)
      each(tasks[t].reads, [&](std::int64_t low, std::int64_t high) {
        board.read(static_cast<std::uint32_t>(t), low, high);
      });
  }
}

}  // namespace weft::program
