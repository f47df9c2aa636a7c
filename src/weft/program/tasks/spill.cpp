#include "weft/program/tasks/spill.h"

#include <algorithm>
#include <map>

namespace weft::program {
namespace {

// Spilling smaller buffers costs more in pages than it frees.
constexpr std::int64_t kLeastSpilled = kSpillPage;

// By buffer: whether an exchange moves it, possibly concurrently with other work.
std::vector<bool> exchanged(const Program& program) {
  std::vector<bool> moved(program.buffers.size());
  for (const Unit& unit : program.units)
    if (std::holds_alternative<Exchange>(unit.kernel))
      for (const std::vector<Place>* places : {&unit.reads, &unit.writes})
        for (const Place& place : *places)
          if (place.buffer.valid()) moved[place.buffer.value] = true;
  return moved;
}

// The unit at which the most unspilled temporaries are alive.
std::uint32_t fullest_unit(const Program& program) {
  std::vector<std::int64_t> change(program.units.size() + 1);
  for (const Buffer& buffer : program.buffers) {
    if (is_persistent(buffer.role) || buffer.spilled) continue;
    change[buffer.born] += buffer.bytes;
    change[std::min<std::size_t>(buffer.dies, program.units.size())] -= buffer.bytes;
  }
  std::int64_t alive = 0, most = -1;
  std::uint32_t fullest = 0;
  for (std::uint32_t u = 0; u < program.units.size(); ++u)
    if ((alive += change[u]) > most) most = alive, fullest = u;
  return fullest;
}

// By buffer: the number of units around `at` during which it is not accessed; 0 if it is accessed
// there.
std::vector<std::uint32_t> waits_around(const Program& program, std::uint32_t at) {
  std::vector<std::uint32_t> before(program.buffers.size()), after(program.buffers.size(), ~std::uint32_t{0});
  for (std::uint32_t u = 0; u < program.units.size(); ++u)
    for (const std::vector<Place>* places : {&program.units[u].reads, &program.units[u].writes})
      for (const Place& place : *places) {
        const std::size_t b = place.buffer.value;
        if (u <= at) before[b] = u;
        if (u >= at) after[b] = std::min(after[b], u);
      }
  for (std::size_t b = 0; b < after.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    const bool waits = buffer.born < at && at < buffer.dies && after[b] != ~std::uint32_t{0};
    after[b] = waits ? after[b] - before[b] : 0;
  }
  return after;
}

// Marks the largest first until there are enough bytes.
bool mark(Program& program, std::vector<std::size_t> candidates, std::int64_t bytes) {
  std::ranges::stable_sort(candidates, [&](std::size_t x, std::size_t y) {
    return program.buffers[x].bytes > program.buffers[y].bytes;
  });
  bool any = false;
  for (const std::size_t b : candidates) {
    if (bytes <= 0) break;
    program.buffers[b].spilled = any = true;
    bytes -= program.buffers[b].bytes;
  }
  return any;
}

}  // namespace

bool spill_more(Program& program, std::int64_t bytes) {
  const std::vector<bool> moved = exchanged(program);
  const auto may_go = [&](std::size_t b, BufferRole role) {
    const Buffer& buffer = program.buffers[b];
    return buffer.role == role && !buffer.spilled && !moved[b] && buffer.bytes >= kLeastSpilled;
  };
  std::vector<std::size_t> states, waiting, parameters;
  constexpr std::uint32_t kLongWait = 8;  // units: enough time to read a page back
  const std::vector<std::uint32_t> waits = waits_around(program, fullest_unit(program));
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (may_go(b, BufferRole::state)) states.push_back(b);
    if (may_go(b, BufferRole::temporary) && waits[b] >= kLongWait) waiting.push_back(b);
    if (may_go(b, BufferRole::parameter)) parameters.push_back(b);
  }
  for (const std::vector<std::size_t>& candidates : {states, waiting, parameters})
    if (!candidates.empty()) return mark(program, candidates, bytes);
  return false;
}

std::vector<std::vector<Extent>> release_points(const Program& program) {
  std::vector<std::vector<Extent>> released(program.tasks.size());
  // From the last task of a unit backwards: what a later task still accesses is not released.
  std::map<std::uint32_t, Extent> later;  // by buffer: the range that later tasks of the current unit access
  std::uint32_t unit = ~std::uint32_t{0};
  for (std::size_t t = program.tasks.size(); t-- > 0;) {
    const Task& task = program.tasks[t];
    if (task.unit != unit) later.clear();
    unit = task.unit;
    for (const std::vector<Extent>* extents : {&task.reads, &task.writes})
      for (const Extent& extent : *extents) {
        const auto b = static_cast<std::uint32_t>(extent.buffer.value);
        if (!program.buffers[b].spilled) continue;
        const auto [known, fresh] = later.try_emplace(b, extent);
        if (fresh) {
          released[t].push_back(extent);
          continue;
        }
        Extent& touched = known->second;
        if (!touched.overlaps(extent)) released[t].push_back(extent);
        touched.begin = std::min(touched.begin, extent.begin);
        touched.end = std::max(touched.end, extent.end);
      }
  }
  return released;
}

std::int64_t spill_window(const Program& program, int workers) {
  std::int64_t most = 0;
  for (const Task& task : program.tasks) {
    std::int64_t held = 0;
    for (const std::vector<Extent>* extents : {&task.reads, &task.writes})
      for (const Extent& extent : *extents)
        if (program.buffers[extent.buffer.value].spilled) held += extent.end - extent.begin + 2 * kSpillPage;
    most = std::max(most, held);
  }
  return most * std::max(workers, 1);
}

}  // namespace weft::program
